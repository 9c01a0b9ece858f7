// SPDX-License-Identifier: BSD-3-Clause
//
// A conduit is a byte stream between two processes, in order, in both directions. It carries the
// frames of one link, which knows it only by this contract. It is a socket, a filter over another
// conduit (encryption), or an upgrade that replaces the socket (a ring in shared memory, a queue
// pair). Nothing here blocks. The endpoint's lock guards it.
//
// Writing has three stages. Bytes are *taken* when write returns them: the conduit owns a copy, or
// they have left. The peer may be unable to read the last unsent() of them until this process has
// called flush() so often that unsent() is 0. Before that no send completes, so no MPI call
// returns, and BYE, ABORT and the end of the process wait for it too. When delivered() is true,
// this process may end, and the peer can still read everything.
#pragma once

#include <poll.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "transports/peer_memory.h"
#include "transports/transport.h"

namespace sluice {

// A key that processes say in clear, a proof, or a nonce.
using Key = std::array<std::byte, 16>;

// Half of a process's key pair, published with its address. Not a secret.
using PublicKey = std::array<std::byte, 32>;

// The secret of two processes. Erased when it goes, so that it is in no core dump later.
struct PairKey {
  PairKey() = default;
  PairKey(const PairKey&) = default;
  PairKey& operator=(const PairKey&) = default;
  ~PairKey() { explicit_bzero(bytes.data(), bytes.size()); }

  std::array<std::byte, 32> bytes{};
};

class Conduit {
 public:
  struct Moved {
    enum class Result { some, nothing, closed, failed };
    Result result;
    size_t bytes = 0;  // if some
    int error = 0;     // errno if it failed

    // It failed because the kernel lacked memory. A write or a flush has taken nothing then, and
    // may be tried again.
    bool ran_short() const { return error == ENOBUFS || error == ENOMEM; }
  };

  virtual ~Conduit() = default;
  virtual const char* name() const = 0;  // "tcp"

  // Writes the runs in order, as many bytes as there is room for now. Result `nothing`: no room.
  // `failed` with EPIPE, ECONNRESET or ETIMEDOUT: the peer is gone, but what it sent before may
  // still be read.
  virtual Moved write(std::span<const iovec> runs) = 0;
  // Like write, for bytes that another write follows at once. The kernel may keep them until then,
  // to make long segments (the records of one call of TLS).
  virtual Moved write_more(std::span<const iovec> runs) { return write(runs); }
  // Fills the runs in order with what has arrived. Result `closed`: everything has been read, and
  // the peer sends no more.
  virtual Moved read(std::span<const iovec> runs) = 0;

  // Bytes taken by write that the peer cannot read before this process has moved on; more, if the
  // conduit has bytes of its own to send first (a handshake). Of a record of encryption that has
  // not left whole, all bytes.
  virtual size_t unsent() const { return 0; }
  // Moves some of them. Fails as write does.
  virtual Moved flush() { return {Moved::Result::nothing}; }
  // Whether all bytes taken arrive although this process ends now. (The link asks a socket's kernel
  // itself.)
  virtual bool delivered() { return unsent() == 0; }
  // Bytes have arrived that can be read although poll may report nothing.
  virtual bool buffered() const { return false; }
  // The events to poll the socket for, to read and to write.
  virtual short interest(bool reads, bool writes) const {
    return static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
  }
  // How far the two sides' handshake is, if the conduit needs one: nothing of the peer's has come,
  // some of it has, or it is done.
  enum class Handshake { awaited, under_way, done };
  virtual Handshake handshake() const { return Handshake::done; }
  // Once something failed: why, in words, if errno does not say it ("TLS: ..."). Else empty.
  virtual std::string problem() const { return {}; }
};

// The two ends of a connection, as this process knows them.
struct ConduitEnds {
  ProcessId self, peer;
  PairKey key;              // of the two
  bool connects;            // this side made the connection
  std::string peer_host{};  // the name of the peer's host, published likewise; empty: not known
};

// A process's key pair, and a keyed hash, by which two processes prove to each other who they are.
// The private key does not leave the prover.
class Prover {
 public:
  virtual ~Prover() = default;
  virtual const PublicKey& public_key() const = 0;
  // Code::unavailable, with the reason, once what computes keys and proofs can no longer be used.
  virtual Status state() const { return {}; }
  // The secret of this process and the peer with this public key. Nobody else can compute it. It
  // depends on both ids. Code::invalid if that is no public key; Code::unavailable, as of prove, if
  // what computes it can no longer be used.
  virtual Result<PairKey> agree(const ProcessId& self, const ProcessId& peer,
                                const PublicKey& peer_key) const = 0;
  // A keyed hash of the text (HMAC).
  virtual Result<Key> prove(const PairKey& key, std::span<const std::byte> text) const = 0;
};

// Makes the filters of connections. Both sides of a connection use one, or neither. A filter
// carries everything after the greetings, in which each side says whether it means to use one.
class FilterMaker {
 public:
  virtual ~FilterMaker() = default;
  // Whether a connection has a filter. within_host: it is certain that it cannot leave the host.
  virtual bool filters(bool within_host) const = 0;
  // below: outlives the filter. Nothing has been read from it or written to it after the greeting.
  virtual Result<std::unique_ptr<Conduit>> make(Conduit& below, const ConduitEnds& ends) = 0;
};

// An upgrade: a faster conduit in place of the base conduit (the socket, or the filter over it)
// that two processes already have. The base stays: it carries the wake-up for a sleeping peer, and
// its end is the death notice. While nothing moves, reading and writing make no system call.
class Upgrade : public Conduit {
 public:
  // Connecting side: the peer has attached, and sent this answer. An error: the upgrade is dropped,
  // and the link stays on its base.
  virtual Status accepted(std::span<const std::byte> answer) = 0;
  // Whether bytes have crossed between the two in both directions; an error if they cannot. Both
  // sides ask again and again after the offer is accepted, which also makes the bytes go: first
  // the connecting side's, then the answer to them. The connecting side shifts when this is true.
  virtual Result<bool> tried() { return true; }
  // All that this side had to send over the base has been sent. From now on this side sends only
  // wake-up bytes there, which carry no meaning. (Before this call, reading wakes no sleeping
  // peer.)
  virtual void take_base() = 0;

  // Called before this process polls for a wake-up, because it waits for something to read, for
  // room to write, or for both. False if there is something to do already.
  virtual bool may_sleep(bool reads, bool writes) = 0;
  // The process no longer sleeps. any: the poll found something.
  virtual void awake(bool any) = 0;
  // False: to read would move nothing, and has nothing to report. Cheaper than to read.
  virtual bool has_arrived() { return true; }
  // Takes the wake-up bytes from the base, once the peer sends no frames over it any more. Also
  // notes the peer's end, which read and write report from then on. True if there was anything.
  virtual bool hear() = 0;
  // What becomes of what this side has written if the base breaks while both processes live.
  enum class Output : uint8_t {
    lost,
    on_its_way,  // it may come yet: ask again
    kept         // it lies where the peer reads it
  };
  virtual Output output() { return Output::lost; }
  // The base has broken, and the peer has ended. False if more of what it had written before may be
  // to be read later.
  virtual bool end() { return true; }
  // A descriptor to poll for reading beside the socket's while this process sleeps; -1: none. Many
  // upgrades may have the same.
  virtual int descriptor() const { return -1; }
  // The peer's memory; nullptr: this side can't read it.
  virtual PeerMemory* memory() { return nullptr; }
  // A wake-up byte, not POLLOUT, reports room.
  short interest(bool reads, bool writes) const override { return reads || writes ? POLLIN : 0; }
};

// How upgrades are made: the connecting side makes one and offers it over the base, and the
// accepting side attaches to it and answers. If any step fails, the connecting side offers the
// maker's next choice or the next maker's; after the last, the link stays on its base. Only the
// connecting side ends an accepted offer, so both decide alike; frames go over the base meanwhile,
// so nobody waits for it, and no clock decides (transports/tcp/upgrade_negotiation.h has the
// handshake). A maker serves one endpoint, whose lock guards it.
class UpgradeMaker {
 public:
  static constexpr size_t max_offer = 512;  // bytes, of an answer too

  struct Made {
    std::unique_ptr<Upgrade> upgrade;
    std::vector<std::byte>
        offer;  // sent to the peer, or for attach, the answer; opaque to the link
  };

  virtual ~UpgradeMaker() = default;
  // Names the maker to the peer: 1 to 127, never reused for another. 1: shm, 2: verbs.
  virtual uint8_t id() const = 0;
  // Whether it can serve two processes on the same host, or on different hosts.
  virtual bool serves(bool same_host) const = 0;
  // Whether others may see its bytes unencrypted: it is not used where the base is encrypted.
  virtual bool exposes() const = 0;
  // How many different offers it can make to a peer, at least 1.
  virtual size_t choices() { return 1; }
  // base: the link's; it outlives the upgrade. choice: 0 at first. The next one is made if this one
  // cannot be made, is declined with Code::mismatch, or comes to nothing after it was accepted.
  virtual Result<Made> make(Conduit& base, size_t choice) = 0;
  // offer: from a peer that has proved its identity; its content must not be trusted. The error is
  // Code::mismatch if another choice of the peer's may do.
  virtual Result<Made> attach(std::span<const std::byte> offer, Conduit& base) = 0;
};

}  // namespace sluice
