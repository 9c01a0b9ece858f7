// SPDX-License-Identifier: BSD-3-Clause
//
// File descriptors that Sluice makes, of whatever kind.
#pragma once

#include <utility>

namespace sluice {

// Owns one that has just been made, close-on-exec; -1: there is none, and errno says why. It moves
// out of the way of standard input, output and error: a program that closed one of these may write
// to it all the same, and may put there what it likes at any time. A child of fork() has nothing
// behind its number, which stays taken, for the child has the object, too: else a process that dies
// would look alive to its peers for as long as a child of its lives.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd);
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }

  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  void close();

 private:
  int fd_ = -1;
};

}  // namespace sluice
