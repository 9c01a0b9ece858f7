// SPDX-License-Identifier: BSD-3-Clause
//
// A piece of memory that some processes of a host map. It has no name (memfd_create(2)): the others
// open its maker's descriptor under /proc, and nothing is left when all are gone, whichever way
// they go. Where the kernel does not let them (containers with process or user namespaces of their
// own), a segment is a file in /dev/shm, mode 0600, that has a name only until all have opened it;
// a name that its maker died with is removed by whoever makes the next one.
//
// Each process holds a lock on one byte of the file for as long as it lives; the others can look
// whether it does. The lock is the open file's (F_OFD_SETLK in fcntl(2)), not the process's, which
// would lose it as soon as anybody in it opened and closed the file once more. A child of fork()
// has neither the file nor the mapping nor a say in the name.
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
  // How another process opens it, and knows that it is the right one.
  struct Handle {
    uint64_t device = 0, inode = 0;
    uint64_t number = 0;  // in its name in /dev/shm; 0: no name
    int32_t process = 0, file = 0;

    bool operator==(const Handle&) const = default;
    std::string path() const;
  };
  enum class Way { unnamed, named };

  // Makes one, zeroed, of which no memory is reserved yet, and which has no name yet. (Where it is
  // to get one, those of the dead go first.)
  static Result<Segment> create(size_t bytes, Way way);
  // Opens one that another process of the same user made. An error if it can't be seen from here.
  static Result<Segment> open(const Handle& handle, size_t bytes);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }
  const Handle& handle() const { return handle_; }
  // From then on no access to these bytes can fail, by any process: an error where there is no
  // room. Memory that had none comes from near this process.
  Status reserve(size_t offset, size_t bytes);
  // Gives their memory back, whole pages of it; they are zero again.
  void release(size_t offset, size_t bytes);
  // Where it was made so: others can open it by name; nobody can any more.
  Status give_name();
  void remove_name();

  // Once all have opened it, and if nobody has signed: it stays mapped, and takes no descriptor.
  void close_file() { file_.close(); }

  // This process is number `index` of it. False if the kernel grants no lock.
  bool sign(uint32_t index);
  // Whether the process that signed as that number lives. (Not to be asked of itself.)
  bool lives(uint32_t index) const;
  // False in a child of the process that has it.
  bool is_ours() const;

 private:
  Segment(const Handle& handle, Descriptor file, size_t bytes);
  Status map();

  Handle handle_;
  Descriptor file_;
  std::byte* data_ = nullptr;
  size_t bytes_;
  bool named_ = false;  // by us, and not removed yet
  pid_t process_;
};

}  // namespace sluice
