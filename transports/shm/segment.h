// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that some processes of a host map. It has no name (memfd_create(2)): the other processes
// open its maker's descriptor under /proc, and nothing is left when all have ended, however they
// end. If the kernel does not allow that (containers with process or user namespaces of their own),
// a segment is a file in /dev/shm, mode 0600, that has a name only until all have opened it. If its
// maker dies before that, the next process that makes such a segment removes the name.
//
// Each process locks one byte of the file as long as it lives, so that the others can test whether
// it does. The lock belongs to the open file (F_OFD_SETLK in fcntl(2)): a lock of the process would
// be lost as soon as anything in the process opened and closed the file again. A child of fork()
// inherits neither the file nor the mapping, and never removes the name.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/base/status.h"
#include "transports/descriptor.h"

namespace sluice {

class Segment {
 public:
  // How another process opens the segment and checks that it is the right one. All numbers but the
  // random one may be equal to those of a segment of another host.
  struct Handle {
    uint64_t device = 0, inode = 0;
    uint64_t number = 0;            // random; part of the name
    int32_t process = 0, file = 0;  // file: -1 if the name is in /dev/shm

    bool operator==(const Handle&) const = default;
    bool has_name() const { return file < 0; }
    std::string path() const;
  };
  enum class Way { unnamed, named };

  // Makes a zeroed segment, with no memory reserved and no name yet (see give_name). With
  // Way::named, first removes names left by dead processes.
  static Result<Segment> create(size_t bytes, Way way);
  // Opens a segment of another process of this user. An error if this process can't reach it.
  static Result<Segment> open(const Handle& handle, size_t bytes);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }
  const Handle& handle() const { return handle_; }
  // Reserves memory, so that no process's access to these bytes can fail. An error if there is no
  // room. Newly reserved memory comes from near this process (NUMA).
  Status reserve(size_t offset, size_t bytes);
  // Frees the memory of these bytes, whole pages only; they read as zero again.
  void release(size_t offset, size_t bytes);
  // With Way::named: lets others open the segment by name, and ends that again.
  Status give_name();
  void remove_name();

  // For use when all have opened the segment and none has called sign: it stays mapped, but needs
  // no descriptor.
  void close_file() { file_.close(); }

  // Locks byte `index`, as process number `index` of the segment. False if the kernel grants no
  // lock.
  bool sign(uint32_t index);
  // Whether the process that signed with that number lives. Not for this process's own number.
  bool lives(uint32_t index) const;
  // False in a child of the process that owns this object.
  bool is_ours() const;

 private:
  Segment(const Handle& handle, Descriptor file, size_t bytes);
  Status map();

  Handle handle_;
  Descriptor file_;
  std::byte* data_ = nullptr;
  size_t bytes_;
  bool named_ = false;  // this process gave the name, and has not removed it
  pid_t process_;
};

}  // namespace sluice
