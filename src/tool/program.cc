// SPDX-License-Identifier: BSD-3-Clause
#include "src/tool/program.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace sluice {
namespace {

constexpr size_t longest_chain = 8;
constexpr size_t head_size = 4096;  // bytes read of a file: enough for a script's first line

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);

class File {
 public:
  explicit File(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  bool is_open() const { return fd_ >= 0; }

  std::string read(size_t size, off_t offset) const {
    std::string text(size, '\0');
    const ssize_t got = pread(fd_, text.data(), size, offset);
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
  }

 private:
  int fd_;
};

Status reject(const std::string& path, const std::string& why) {
  return {Code::invalid, path + " " + why};
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool is_runnable(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

Status check_runnable(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0)
    return reject(path, std::string("is not there: ") + strerror(errno));
  if (S_ISDIR(info.st_mode)) return reject(path, "is a directory, not a program");
  if (!is_runnable(path)) return reject(path, "is not executable (chmod +x makes it so)");
  return {};
}

// The file of a command: a path as it is; a name is looked up in PATH.
Result<std::string> find_file(const std::string& command) {
  if (command.find('/') != std::string::npos) {
    const Status status = check_runnable(command);
    if (!status.ok()) return status;
    return command;
  }
  const char* path = getenv("PATH");
  for (const std::string& folder : split(path ? path : "/bin:/usr/bin", ':')) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + command;
    if (is_runnable(file)) return file;
  }
  const bool is_here = access(command.c_str(), F_OK) == 0;
  return reject(command, is_here ? "is not in PATH; did you mean ./" + command + "?"
                                 : "is neither a file here nor a program in PATH");
}

// In secure-execution mode (setuid, setgid, capabilities) ld.so ignores preloads with slashes.
Status check_rights(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return reject(path, strerror(errno));
  const bool other_user = (info.st_mode & S_ISUID) && info.st_uid != getuid();
  const bool other_group = (info.st_mode & S_ISGID) && info.st_gid != getgid();
  if (other_user || other_group) {
    return reject(path, "is setuid or setgid: the dynamic linker takes no preload there");
  }
  if (getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return reject(path, "has file capabilities: the dynamic linker takes no preload there");
  }
  return {};
}

bool read_header(const File& file, Header* header) {
  const std::string bytes = file.read(sizeof *header, 0);
  if (bytes.size() < EI_NIDENT || memcmp(bytes.data(), ELFMAG, SELFMAG) != 0) return false;
  memcpy(header, bytes.data(), std::min(bytes.size(), sizeof *header));
  return true;
}

Status check_architecture(const std::string& path, const Header& header) {
  Header own{};
  if (!read_header(File("/proc/self/exe"), &own)) return {};
  if (header.e_ident[EI_CLASS] == own.e_ident[EI_CLASS] && header.e_machine == own.e_machine) {
    return {};
  }
  return reject(path, "is a program of another architecture than Sluice");
}

// The path in PT_INTERP; empty if there is none.
std::string read_dynamic_linker(const File& file, const Header& header) {
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const off_t offset = static_cast<off_t>(header.e_phoff + i * header.e_phentsize);
    const std::string bytes = file.read(sizeof(Segment), offset);
    Segment segment{};
    if (bytes.size() < sizeof segment) break;
    memcpy(&segment, bytes.data(), sizeof segment);
    if (segment.p_type != PT_INTERP || segment.p_filesz > head_size) continue;
    const std::string path = file.read(segment.p_filesz, static_cast<off_t>(segment.p_offset));
    return path.substr(0, path.find('\0'));
  }
  return "";
}

Result<std::string> dynamic_linker_of(const std::string& path, const File& file,
                                      const Header& header) {
  const Status status = check_architecture(path, header);
  if (!status.ok()) return status;
  std::string linker = read_dynamic_linker(file, header);
  if (linker.empty()) {
    return reject(path,
                  "is statically linked: nothing can be preloaded into it; link it dynamically");
  }
  return linker;
}

// The program that /usr/bin/env would start, given the rest of a script's #! line.
std::string command_of_env(const std::string& arguments) {
  bool is_value = false;
  for (const std::string& word : split(arguments, ' ')) {
    const bool is_option = word.empty() || word[0] == '-';
    if (!is_option && !is_value && word.find('=') == std::string::npos) return word;
    if (!word.empty())
      is_value = word == "-u" || word == "-C" || word == "--unset" || word == "--chdir";
  }
  return "";
}

// What runs a file that is not ELF: the interpreter in its #! line, or the shell.
std::string interpreter_of(const std::string& head) {
  if (!head.starts_with("#!")) return "/bin/sh";
  const std::string line = head.substr(2, head.find('\n') - 2);
  const size_t first = line.find_first_not_of(" \t");
  if (first == std::string::npos) return "/bin/sh";
  const size_t end = std::min(line.find_first_of(" \t", first), line.size());
  const std::string interpreter = line.substr(first, end - first);
  if (!interpreter.ends_with("/env")) return interpreter;
  const std::string command = command_of_env(line.substr(end));
  return command.empty() ? interpreter : command;
}

}  // namespace

Result<Program> resolve_program(const std::string& command) {
  Program program;
  std::string next = command;
  while (program.chain.size() < longest_chain) {
    const Result<std::string> file = find_file(next);
    if (!file.ok()) {
      return program.chain.empty() ? file.status()
                                   : file.status().with("the interpreter of " + program.elf());
    }
    program.chain.push_back(*file);
    const Status rights = check_rights(*file);
    if (!rights.ok()) return rights;
    const File opened(*file);
    if (!opened.is_open()) return reject(*file, std::string("cannot be read: ") + strerror(errno));
    Header header{};
    if (read_header(opened, &header)) {
      Result<std::string> linker = dynamic_linker_of(*file, opened, header);
      if (!linker.ok()) return linker.status();
      program.dynamic_linker = *linker;
      return program;
    }
    next = interpreter_of(opened.read(head_size, 0));
  }
  return reject(command, "is a script whose interpreters are scripts, too many of them");
}

}  // namespace sluice
