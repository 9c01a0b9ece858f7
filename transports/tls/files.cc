// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tls/files.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/plain_text.h"
#include "src/base/system_call.h"

namespace sluice {
namespace {

// (The list of revocations may be absent.)
Status read_into(std::string* text, const std::string& path) {
  if (path.empty()) return {};
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
  const auto all = [](std::string_view text, bool (*is)(char)) {
    return !text.empty() && std::ranges::all_of(text, is);
  };
  if (name.size() < digits + 2 || name[digits] != '.') return false;
  std::string_view number = name.substr(digits + 1);
  if (number.front() == 'r') number.remove_prefix(1);
  return all(name.substr(0, digits), is_hex_digit) && all(number, is_digit);
}

Status read_folder(std::string* text, const std::string& path) {
  std::unique_ptr<DIR, int (*)(DIR*)> folder(nullptr, closedir);
  const int error = -system_call([&] {
    folder.reset(opendir(path.c_str()));
    return folder ? 0 : -1;
  });
  if (error != 0) return {Code::invalid, "cannot read " + path + ": " + error_text(error)};
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

}  // namespace

TlsFiles::~TlsFiles() { explicit_bzero(key_.text.data(), key_.text.size()); }

Status TlsFiles::File::read(const char* setting, const std::string& path) {
  const Status status =
      is_folder(path) && may_be_folder ? read_folder(&text, path) : read_into(&text, path);
  if (!path.empty()) name = std::string(setting) + ": " + path;
  return status.with(setting);
}

SluiceTlsFile TlsFiles::File::view() const {
  return {name.empty() ? nullptr : name.c_str(), text.data(), text.size()};
}

Status TlsFiles::read(const TlsCertificates& from) {
  Status status = certificate_.read("SLUICE_TLS_CERT", from.certificate);
  if (status.ok()) status = key_.read("SLUICE_TLS_KEY", from.key);
  if (status.ok()) status = authority_.read("SLUICE_TLS_CA", from.authority);
  if (status.ok()) status = revocation_.read("SLUICE_TLS_CRL", from.revocation);
  return status;
}

SluiceTlsFiles TlsFiles::view(const TlsCertificates& from) const {
  return {certificate_.view(), key_.view(), authority_.view(), revocation_.view(),
          from.host.empty() ? nullptr : from.host.c_str()};
}

}  // namespace sluice
