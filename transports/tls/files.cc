// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tls/files.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "src/base/file.h"
#include "src/base/log.h"

namespace sluice {
namespace {

Status read_into(std::string* text, const std::string& path) {
  auto read = read_file(path);
  if (!read.ok()) return read.status();
  *text = std::move(*read);
  return {};
}

bool is_folder(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

// "1a2b3c4d.0" holds a certificate, "1a2b3c4d.r0" a revocation list: the hash of a name, a number.
bool is_hashed(std::string_view name) {
  constexpr size_t digits = 8;
  const auto all = [](std::string_view text, int (*is)(int)) {
    return !text.empty() && std::ranges::all_of(text, [&](char c) {
      return is(static_cast<unsigned char>(c)) != 0;
    });
  };
  if (name.size() < digits + 2 || name[digits] != '.') return false;
  std::string_view number = name.substr(digits + 1);
  if (number.front() == 'r') number.remove_prefix(1);
  return all(name.substr(0, digits), std::isxdigit) && all(number, std::isdigit);
}

Status read_folder(std::string* text, const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (!folder) return {Code::invalid, "cannot read " + path + ": " + strerror(errno)};
  while (const dirent* const entry = readdir(folder.get())) {
    if (!is_hashed(entry->d_name)) continue;
    const auto read = read_file(path + "/" + entry->d_name);
    if (!read.ok()) {
      log(Level::warning, "SLUICE_TLS_CA: %s", read.status().message().c_str());
    } else {
      *text += *read + "\n";
    }
    if (text->size() > most_file_bytes) return {Code::invalid, path + " holds too much"};
  }
  return {};
}

SluiceTlsFile view_of(const std::string& path, const std::string& text) {
  return {path.empty() ? nullptr : path.c_str(), text.data(), text.size()};
}

}  // namespace

TlsFiles::~TlsFiles() { explicit_bzero(key_.data(), key_.size()); }

Status TlsFiles::read(const TlsCertificates& from) {
  Status status = read_into(&certificate_, from.certificate);
  if (status.ok()) status = read_into(&key_, from.key);
  if (status.ok()) {
    status = is_folder(from.authority) ? read_folder(&authority_, from.authority)
                                       : read_into(&authority_, from.authority);
  }
  if (status.ok() && !from.revocation.empty()) status = read_into(&revocation_, from.revocation);
  return status;
}

SluiceTlsFiles TlsFiles::view(const TlsCertificates& from) const {
  return {view_of(from.certificate, certificate_), view_of(from.key, key_),
          view_of(from.authority, authority_), view_of(from.revocation, revocation_),
          from.host.empty() ? nullptr : from.host.c_str()};
}

}  // namespace sluice
