// SPDX-License-Identifier: BSD-3-Clause
//
// Ownership of the file descriptors that Sluice opens, of any kind.
#pragma once

#include <utility>

namespace sluice {

// Owns a newly made close-on-exec descriptor. A negative number: making it failed, and is the errno
// value, negated (system_call). A descriptor below 3 is moved to a higher number: a program that
// closed its standard input, output or error may still write to it, or open something else there.
// In a child of fork() the number stays taken but refers to /dev/null. Otherwise the child would
// keep the file open, and a dead process would look alive to its peers while its child lives. Where
// the program has closed a descriptor of Sluice's, and has opened a file of its own there, that
// file is the program's: it is not closed, here or in a child.
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
  int error() const { return fd_ < 0 ? -fd_ : 0; }  // if making it failed
  // Whether the program has closed it, or put another file there. A system call.
  bool is_taken() const;
  void close();

 private:
  int fd_ = -1;
};

}  // namespace sluice
