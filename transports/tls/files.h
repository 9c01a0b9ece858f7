// SPDX-License-Identifier: BSD-3-Clause
//
// What the files of TlsCertificates (tls.h) hold. A private key is erased with this.
#pragma once

#include <string>

#include "src/base/status.h"
#include "transports/tls/module.h"
#include "transports/tls/tls.h"

namespace sluice {

class TlsFiles {
 public:
  TlsFiles() = default;
  ~TlsFiles();
  TlsFiles(const TlsFiles&) = delete;
  TlsFiles& operator=(const TlsFiles&) = delete;

  // Reads them all. Of a folder of authorities it reads the files that OpenSSL would look for
  // there, and warns of those that cannot be read. The errors of read_file (src/base/file.h), after
  // the setting's name.
  Status read(const TlsCertificates& from);
  // For the module. As long as this and `from` live.
  SluiceTlsFiles view(const TlsCertificates& from) const;

 private:
  struct File {
    bool may_be_folder = false;
    std::string name{}, text{};  // name: the setting and the path; empty: there is none

    Status read(const char* setting, const std::string& path);
    SluiceTlsFile view() const;
  };

  File certificate_, key_, authority_{.may_be_folder = true}, revocation_;
};

}  // namespace sluice
