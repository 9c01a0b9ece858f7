// SPDX-License-Identifier: BSD-3-Clause
#include "transports/tls/tls.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

#include "src/base/log.h"
#include "transports/tls/files.h"
#include "transports/tls/module.h"

namespace sluice {
namespace {

constexpr size_t record = 16 << 10;
constexpr size_t most_in_one_call = 16 * record;
// From below, whatever it decrypts to: a peer may send records of a byte, or new keys without end.
constexpr size_t most_received_in_one_call = most_in_one_call + 4 * record;

using Id = std::array<unsigned char, SLUICE_TLS_ID>;
static_assert(std::tuple_size_v<Key> == SLUICE_TLS_KEY);
static_assert(std::tuple_size_v<PublicKey> == SLUICE_TLS_PUBLIC);
static_assert(sizeof(PairKey::bytes) == SLUICE_TLS_PAIR);

// The same bytes on every machine.
Id bytes_of(const ProcessId& process) {
  Id id;
  for (size_t i = 0; i < 8; ++i) {
    id[i] = static_cast<unsigned char>(process.high >> (8 * i));
    id[8 + i] = static_cast<unsigned char>(process.low >> (8 * i));
  }
  return id;
}

template <typename Array>
auto* bytes_of(Array& key) {
  using Byte = std::conditional_t<std::is_const_v<Array>, const unsigned char, unsigned char>;
  return reinterpret_cast<Byte*>(key.data());
}

Result<const SluiceTls*> load_tls(const std::string& folder) {
  auto opened =
      open_module<SluiceTls>({"libsluice-tls.so", SLUICE_TLS_SYMBOL, SLUICE_TLS_VERSION}, folder);
  const char* const lacks = opened.ok() ? (*opened)->lacks() : nullptr;
  if (lacks != nullptr) return Status(Code::unavailable, lacks);
  return opened;
}

// Why it made nothing.
Status failure_of(const SluiceTls& tls, const char* without_memory) {
  if (const char* const lacks = tls.lacks()) return {Code::unavailable, lacks};
  return {Code::memory, without_memory};
}

Result<const SluiceTls*> open_tls(const std::string& folder, std::string* about) {
  auto opened = load_tls(folder);
  if (!opened.ok()) return opened.status();
  char text[200] = "";
  if ((*opened)->start(text, sizeof(text)) != 0) return Status(Code::unavailable, text);
  *about = text;
  return *opened;
}

class TlsFilter final : public Conduit {
 public:
  TlsFilter(const SluiceTls& tls, Conduit& below) : tls_(tls), below_(below) {}
  ~TlsFilter() override { tls_.close(session_); }
  TlsFilter(const TlsFilter&) = delete;
  TlsFilter& operator=(const TlsFilter&) = delete;

  // First. False if there is no memory.
  bool open(const SluiceTlsEnds& ends) {
    const SluiceTlsBelow below{this, send_below, receive_below};
    session_ = tls_.open(&ends, &below);
    return session_ != nullptr;
  }

  const char* name() const override { return "tls"; }
  Moved write(std::span<const iovec> runs) override;
  Moved read(std::span<const iovec> runs) override;
  size_t unsent() const override;
  Moved flush() override;
  bool buffered() const override { return shaken_ && tls_.holds(session_) != 0; }
  short interest(bool reads, bool writes) const override {
    const bool sends = unsent() > 0 || (writes && shaken_);
    const bool hears = reads || (writes && !shaken_ && unsent() == 0);
    return static_cast<short>((hears ? POLLIN : 0) | (sends ? POLLOUT : 0));
  }
  Handshake handshake() const override {
    if (shaken_) return Handshake::done;
    return heard_ ? Handshake::under_way : Handshake::awaited;
  }
  std::string problem() const override {
    const char* const why = tls_.why(session_);
    return *why != '\0' ? std::string("TLS: ") + why : std::string();
  }

 private:
  static bool is_some(const Moved& moved) { return moved.result == Moved::Result::some; }
  static bool has_ended(const Moved& moved) {
    return moved.result == Moved::Result::closed ||
           (moved.result == Moved::Result::failed && !moved.ran_short());
  }
  static Moved some(size_t bytes) {
    return {bytes > 0 ? Moved::Result::some : Moved::Result::nothing, bytes};
  }

  // The module's way to the conduit below. What that said last stays in sent_ and received_.
  static size_t send_below(void* filter, const void* bytes, size_t size, int more);
  static size_t receive_below(void* filter, const iovec* runs, size_t count);

  Moved shake_hands();
  Moved push();
  Moved fail();
  void begin_receiving();
  int seal(std::span<const iovec> runs, size_t skip, size_t most);

  const SluiceTls& tls_;
  Conduit& below_;
  SluiceTlsSession* session_ = nullptr;
  Moved sent_{}, received_{};
  Moved ended_{};         // what received_ said behind bytes that were given
  size_t got_ = 0;        // from below, in this call
  bool drained_ = false;  // below had fewer bytes than there was room for, in this call
  size_t sealed_ = 0;     // bytes of the latest record
  bool shaken_ = false, heard_ = false;
};

size_t TlsFilter::send_below(void* filter, const void* bytes, size_t size, int more) {
  auto& self = *static_cast<TlsFilter*>(filter);
  const iovec run{const_cast<void*>(bytes), size};
  self.sent_ = more != 0 ? self.below_.write_more({&run, 1}) : self.below_.write({&run, 1});
  return is_some(self.sent_) ? self.sent_.bytes : 0;
}

size_t TlsFilter::receive_below(void* filter, const iovec* runs, size_t count) {
  auto& self = *static_cast<TlsFilter*>(filter);
  if (self.drained_) return 0;
  size_t room = 0;
  for (size_t i = 0; i < count; ++i) room += runs[i].iov_len;
  self.received_ = self.below_.read({runs, count});
  const size_t got = is_some(self.received_) ? self.received_.bytes : 0;
  self.got_ += got;
  self.drained_ = got < room || self.got_ >= most_received_in_one_call;
  self.heard_ |= got > 0;
  return got;
}

// The peer can read nothing of a record before all of it has come.
size_t TlsFilter::unsent() const {
  const size_t left = tls_.unsent(session_);
  return left == 0 ? 0 : std::max(left, sealed_);
}

void TlsFilter::begin_receiving() {
  drained_ = false;
  got_ = 0;
  received_ = some(0);
}

// The alert that says why goes to the peer, if there is room.
Conduit::Moved TlsFilter::fail() {
  (void)push();
  return {Moved::Result::failed, 0, EPROTO};
}

Conduit::Moved TlsFilter::push() {
  if (unsent() == 0) return some(0);
  tls_.flush(session_);
  return sent_;
}

// Of a handshake OpenSSL may hold more than there was room for.
Conduit::Moved TlsFilter::flush() {
  const Moved pushed = push();
  if (shaken_ || !is_some(pushed)) return pushed;
  const Moved shaken = shake_hands();
  return shaken.result == Moved::Result::failed ? shaken : pushed;
}

// Result `some`: it is done.
Conduit::Moved TlsFilter::shake_hands() {
  if (shaken_) return {Moved::Result::some};
  for (bool flushed = true; flushed;) {
    begin_receiving();
    sent_ = some(0);
    const int shaken = tls_.shake(session_);
    if (shaken == SLUICE_TLS_FAILED) return fail();
    shaken_ = shaken == 1;
    flushed = unsent() > 0 && is_some(push());  // there may have been no room for all of it
    if (has_ended(sent_)) return sent_;
    if (shaken_) return {Moved::Result::some};
  }
  return has_ended(received_) ? received_ : some(0);
}

// Encrypts the next record: straight from the run that holds all of it, or from a copy. most: bytes
// that this call seals in all.
int TlsFilter::seal(std::span<const iovec> runs, size_t skip, size_t most) {
  const size_t size = std::min(most - skip, record);
  const int more = skip + size < most;
  while (skip >= runs.front().iov_len) {
    skip -= runs.front().iov_len;
    runs = runs.subspan(1);
  }
  const auto* const first = static_cast<const std::byte*>(runs.front().iov_base) + skip;
  if (runs.front().iov_len - skip >= size) return tls_.seal(session_, first, size, more);
  std::array<std::byte, record> joined;
  for (size_t end = 0; end < size; runs = runs.subspan(1), skip = 0) {
    const size_t part = std::min(runs.front().iov_len - skip, size - end);
    std::memcpy(joined.data() + end, static_cast<const std::byte*>(runs.front().iov_base) + skip,
                part);
    end += part;
  }
  return tls_.seal(session_, joined.data(), size, more);
}

Conduit::Moved TlsFilter::write(std::span<const iovec> runs) {
  if (const Moved shaken = shake_hands(); !is_some(shaken)) {
    // What the peer sent before it ended is read, and explains more.
    return shaken.result == Moved::Result::closed ? Moved{Moved::Result::failed, 0, EPIPE} : shaken;
  }
  if (const Moved flushed = flush(); has_ended(flushed)) return flushed;
  size_t most = 0, taken = 0;
  for (const iovec& run : runs) most = std::min(most + run.iov_len, most_in_one_call);
  sent_ = some(0);
  while (taken < most && unsent() == 0) {
    const int sealed = seal(runs, taken, most);
    // The peer has the records before this one, which is not taken. The end shows again.
    const bool ended = sealed == SLUICE_TLS_FAILED || has_ended(sent_);
    if (ended && taken > 0) return some(taken);
    if (ended) return sealed == SLUICE_TLS_FAILED ? fail() : sent_;
    if (sealed == SLUICE_TLS_WAITS) break;
    sealed_ = static_cast<size_t>(sealed);
    taken += sealed_;
  }
  return some(taken);
}

Conduit::Moved TlsFilter::read(std::span<const iovec> runs) {
  if (const Moved shaken = shake_hands(); !is_some(shaken)) return shaken;
  if (has_ended(ended_)) return ended_;
  size_t given = 0;
  begin_receiving();
  for (const iovec& run : runs) {
    for (size_t at = 0; at < run.iov_len && given < most_in_one_call;) {
      auto* const to = static_cast<std::byte*>(run.iov_base) + at;
      const int got = tls_.unseal(session_, to, std::min(run.iov_len - at, record));
      if (got == SLUICE_TLS_FAILED) return given > 0 ? some(given) : fail();
      if (got == SLUICE_TLS_WAITS) {
        if (has_ended(received_)) ended_ = received_;
        return given > 0 || is_some(received_) ? some(given) : received_;
      }
      at += static_cast<size_t>(got);
      given += static_cast<size_t>(got);
    }
  }
  return some(given);
}

class TlsProver final : public Prover {
 public:
  // keys: the prover's from now on.
  TlsProver(const SluiceTls& tls, SluiceTlsKeys* keys, const PublicKey& public_key)
      : tls_(tls), keys_(keys), public_key_(public_key) {}
  ~TlsProver() override { tls_.drop_keys(keys_); }
  TlsProver(const TlsProver&) = delete;
  TlsProver& operator=(const TlsProver&) = delete;

  const PublicKey& public_key() const override { return public_key_; }

  Status state() const override {
    const char* const lack = tls_.lacks();
    return lack ? Status(Code::unavailable, lack) : Status();
  }

  Result<PairKey> agree(const ProcessId& self, const ProcessId& peer,
                        const PublicKey& peer_key) const override {
    SluiceTlsPair pair;
    std::ranges::copy(bytes_of(self), pair.own);
    std::ranges::copy(bytes_of(peer), pair.peer);
    std::memcpy(pair.peer_key, peer_key.data(), peer_key.size());
    PairKey key;
    const int agreed = tls_.agree(keys_, &pair, bytes_of(key.bytes));
    if (agreed == 0) return key;
    if (agreed == SLUICE_TLS_NO_KEY) return Status(Code::invalid, "no public key of X25519");
    return failure_of(tls_, "no memory for a key");
  }

  Result<Key> prove(const PairKey& key, std::span<const std::byte> text) const override {
    Key proof{};
    if (tls_.mac(bytes_of(key.bytes), text.data(), text.size(), bytes_of(proof)) != 0) {
      return failure_of(tls_, "no memory for a proof");
    }
    return proof;
  }

 private:
  const SluiceTls& tls_;
  SluiceTlsKeys* const keys_;
  const PublicKey public_key_;
};

class TlsFilters final : public FilterMaker {
 public:
  // identity: null without certificates.
  TlsFilters(const SluiceTls& tls, const TlsOptions& options, SluiceTlsIdentity* identity)
      : tls_(tls), options_(options), identity_(identity) {}
  ~TlsFilters() override { tls_.forget(identity_); }
  TlsFilters(const TlsFilters&) = delete;
  TlsFilters& operator=(const TlsFilters&) = delete;

  bool filters(bool within_host) const override { return !within_host || options_.local; }

  Result<std::unique_ptr<Conduit>> make(Conduit& below, const ConduitEnds& ends) override {
    if (identity_ != nullptr && ends.peer_host.empty()) {
      return Status(Code::invalid, "TLS: the name of the peer's host is not known");
    }
    auto filter = std::make_unique<TlsFilter>(tls_, below);
    SluiceTlsEnds both{};
    const bool first = ends.connects;
    std::memcpy(both.key, ends.key.bytes.data(), SLUICE_TLS_PAIR);
    std::ranges::copy(bytes_of(first ? ends.self : ends.peer), both.first);
    std::ranges::copy(bytes_of(first ? ends.peer : ends.self), both.second);
    both.connects = first;
    both.identity = identity_;
    both.peer_host = ends.peer_host.c_str();
    both.key_bytes = options_.key_bytes;
    const bool opened = filter->open(both);
    explicit_bzero(&both, sizeof(both));
    if (!opened) return failure_of(tls_, "no memory for a connection").with("TLS");
    return std::unique_ptr<Conduit>(std::move(filter));
  }

 private:
  const SluiceTls& tls_;
  const TlsOptions options_;
  SluiceTlsIdentity* const identity_;
};

// What is missing, or null.
const char* missing_of(const TlsCertificates& from) {
  if (from.certificate.empty()) return "SLUICE_TLS_CERT";
  if (from.key.empty()) return "SLUICE_TLS_KEY";
  return from.authority.empty() ? "SLUICE_TLS_CA" : nullptr;
}

void warn_of_readable_key(const std::string& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0 || (status.st_mode & S_IROTH) == 0) return;
  log(Level::warning,
      "every user of this host may read the private key %s of SLUICE_TLS_KEY: chmod 600",
      file.c_str());
}

// *about: what it shows.
Result<SluiceTlsIdentity*> identify(const SluiceTls& tls, const TlsCertificates& from,
                                    std::string* about) {
  if (const char* const missing = missing_of(from)) {
    return Status(Code::invalid, std::string(missing) + " is not set");
  }
  TlsFiles files;
  if (const Status read = files.read(from); !read.ok()) return read.with("TLS");
  const SluiceTlsFiles view = files.view(from);
  char text[800] = "";
  SluiceTlsIdentity* const made = tls.identify(&view, text, sizeof(text));
  if (made == nullptr) return Status(Code::invalid, std::string("TLS: ") + text);
  warn_of_readable_key(from.key);
  *about = text;
  return made;
}

}  // namespace

Result<std::shared_ptr<FilterMaker>> make_tls_filters(const TlsOptions& options) {
  std::string about;
  const auto tls = open_tls(options.folder, &about);
  if (!tls.ok()) return tls.status();
  SluiceTlsIdentity* identity = nullptr;
  if (options.certificates) {
    const auto made = identify(**tls, *options.certificates, &about);
    if (!made.ok()) return made.status();
    identity = *made;
  }
  return std::shared_ptr<FilterMaker>(std::make_shared<TlsFilters>(**tls, options, identity));
}

Result<std::shared_ptr<Prover>> make_tls_prover(const std::string& folder) {
  const auto tls = load_tls(folder);
  if (!tls.ok()) return tls.status();
  PublicKey public_key;
  SluiceTlsKeys* const keys = (*tls)->make_keys(bytes_of(public_key));
  if (keys == nullptr) return Status(Code::unavailable, "OpenSSL gives no keys of X25519");
  const auto drop = [&](SluiceTlsKeys* each) { (*tls)->drop_keys(each); };
  std::unique_ptr<SluiceTlsKeys, decltype(drop)> owned(keys, drop);
  auto made = std::make_shared<TlsProver>(**tls, keys, public_key);
  (void)owned.release();
  // OpenSSL gets ready at the first use of each; what it lacks memory for then, it lacks for good.
  const auto tried = made->prove({}, {});
  if (!tried.ok()) return Status(Code::unavailable, "OpenSSL has no HMAC");
  const auto agreed = made->agree({0, 1}, {0, 2}, public_key);
  if (!agreed.ok()) return Status(Code::unavailable, "OpenSSL agrees on no keys by X25519");
  return std::shared_ptr<Prover>(std::move(made));
}

Result<std::string> describe_tls(const std::string& folder) {
  std::string about;
  const auto tls = open_tls(folder, &about);
  if (!tls.ok()) return tls.status();
  return about;
}

Result<std::string> describe_certificate(const TlsOptions& options) {
  std::string about;
  const auto tls = open_tls(options.folder, &about);
  if (!tls.ok()) return tls.status();
  const auto identity = identify(**tls, *options.certificates, &about);
  if (!identity.ok()) return identity.status();
  (*tls)->forget(*identity);
  return about;
}

}  // namespace sluice
