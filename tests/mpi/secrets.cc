// SPDX-License-Identifier: BSD-3-Clause
//
// secrets [dumped]: what a core dump of a rank would hold, with SLUICE_TLS=psk, while all ranks are
// connected. Each rank notes the secrets that libsluice-tls.so computes with (its private key, what
// it shares with its peers, the keys derived from that), masked, and then looks for them in all of
// its memory that a dump would hold. Prints what it finds.
//
// With `dumped`, the private key's page is put back into dumps: the search must find the key.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <string>

#include "tests/mpi/harness.h"

namespace {

constexpr size_t secret_bytes = 32, most_secrets = 64;
constexpr unsigned char mask = 0x5A;

struct Secret {
  const char* what;
  const unsigned char* at;  // where the module had it
  std::array<unsigned char, secret_bytes> masked;
};
std::array<Secret, most_secrets> secrets;
size_t noted = 0;

// Whether this is code of the module.
bool is_module(const void* code) {
  Dl_info about{};
  return dladdr(code, &about) != 0 && about.dli_fname != nullptr &&
         std::strstr(about.dli_fname, "libsluice-tls") != nullptr;
}

void note(const char* what, const void* caller, const unsigned char* secret) {
  if (!is_module(caller) || noted == most_secrets) return;
  Secret& made = secrets[noted++];
  made.what = what;
  made.at = secret;
  std::transform(secret, secret + secret_bytes, made.masked.begin(),
                 [](unsigned char byte) { return static_cast<unsigned char>(byte ^ mask); });
}

template <typename Function>
Function* in_openssl(Function*, const char* name) {
  void* const library = dlopen("libcrypto.so.3", RTLD_LAZY | RTLD_NOLOAD);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

// What the module calls in place of OpenSSL's functions of these names (opaque types are void).
#pragma GCC visibility push(default)
extern "C" {

// The library opens modules so that they do not call a program's functions (src/base/module.h).
// OpenSSL, opened before, goes on calling its own.
void* dlmopen(Lmid_t space, const char* file, int flags) noexcept {
  const auto real = reinterpret_cast<decltype(&dlmopen)>(dlsym(RTLD_NEXT, __func__));
  (void)dlopen("libssl.so.3", RTLD_NOW | RTLD_DEEPBIND);
  return real(space, file, flags & ~RTLD_DEEPBIND);
}

void* EVP_PKEY_new_raw_private_key_ex(void* library, const char* type, const char* properties,
                                      const unsigned char* key, size_t size) {
  note("private key", __builtin_return_address(0), key);
  return in_openssl(&EVP_PKEY_new_raw_private_key_ex, __func__)(library, type, properties, key,
                                                                size);
}

int EVP_PKEY_derive(void* context, unsigned char* key, size_t* size) {
  const int made = in_openssl(&EVP_PKEY_derive, __func__)(context, key, size);
  note("shared secret", __builtin_return_address(0), key);
  return made;
}

int EVP_KDF_derive(void* context, unsigned char* key, size_t size, const void* params) {
  const int made = in_openssl(&EVP_KDF_derive, __func__)(context, key, size, params);
  const bool of_pair = noted > 0 && std::strcmp(secrets[noted - 1].what, "shared secret") == 0;
  note(of_pair ? "pair key" : "pre-shared key", __builtin_return_address(0), key);
  return made;
}
}
#pragma GCC visibility pop

namespace {

struct Region {
  uintptr_t begin = 0, end = 0;
  bool readable = false, dumped = true;
  std::string name;
};

std::vector<Region> regions() {
  std::vector<Region> found;
  std::ifstream maps("/proc/self/smaps");
  for (std::string line; std::getline(maps, line);) {
    Region each;
    char access[5] = "", name[512] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %*s %511[^\n]", &each.begin, &each.end,
                    access, name) >= 3) {
      each.readable = access[0] == 'r';
      each.name = name;
      found.push_back(each);
    } else if (line.starts_with("VmFlags:") && !found.empty()) {
      found.back().dumped = line.find(" dd") == std::string::npos;
    }
  }
  return found;
}

// Searches bytes, which were at `from`.
void search(const unsigned char* bytes, size_t size, const Region& region, uintptr_t from,
            std::set<std::string>& found) {
  std::array<bool, 256> begins{};
  for (size_t i = 0; i < noted; ++i) begins[secrets[i].masked[0] ^ mask] = true;
  for (size_t at = 0; at + secret_bytes <= size; ++at) {
    if (!begins[bytes[at]]) continue;
    for (size_t i = 0; i < noted; ++i) {
      const auto is_same = [](unsigned char masked, unsigned char byte) {
        return masked == static_cast<unsigned char>(byte ^ mask);
      };
      if (!std::equal(secrets[i].masked.begin(), secrets[i].masked.end(), bytes + at, is_same))
        continue;
      char place[32];
      std::snprintf(place, sizeof place, " at %lx in ", from + at);
      found.insert("found a " + std::string(secrets[i].what) + place + region.name);
    }
  }
}

// The buffer is in no dump, so that the search does not find what it has copied.
std::set<std::string> search_all() {
  constexpr size_t piece = size_t{1} << 20;
  const size_t room = piece + secret_bytes;
  void* const buffer =
      mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  syscall(SYS_madvise, buffer, room, MADV_DONTDUMP);
  const int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  std::set<std::string> found;
  size_t searched = 0;
  for (const Region& each : regions()) {
    if (!each.readable || !each.dumped) continue;
    for (uintptr_t at = each.begin; at < each.end; at += piece) {
      const size_t size = std::min(room, each.end - at);
      const ssize_t got = pread(memory, buffer, size, static_cast<off_t>(at));
      if (got <= 0) continue;  // beyond the end of a file
      searched += static_cast<size_t>(got);
      search(static_cast<const unsigned char*>(buffer), static_cast<size_t>(got), each, at, found);
    }
  }
  close(memory);
  munmap(buffer, room);
  test::check(searched > piece, "the memory can be read");
  return found;
}

bool is_dumped(const unsigned char* at) {
  const auto place = reinterpret_cast<uintptr_t>(at);
  const auto all = regions();
  const auto found = std::ranges::find_if(
      all, [&](const Region& each) { return each.begin <= place && place < each.end; });
  return found == all.end() || found->dumped;
}

// (Not madvise: UCX, below MPICH, replaces it.)
void put_into_dumps(const unsigned char* at) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(at) / page * page;
  test::check(syscall(SYS_madvise, begin, page, MADV_DODUMP) == 0, "a page is dumped again");
}

size_t count(const char* what) {
  return static_cast<size_t>(
      std::count_if(secrets.begin(), secrets.begin() + static_cast<ptrdiff_t>(noted),
                    [&](const Secret& each) { return std::strcmp(each.what, what) == 0; }));
}

// Connects all ranks, and lets all handshakes end.
void connect_all(int ranks) {
  std::vector<int> sent(static_cast<size_t>(ranks) * 10000, 7), got(sent.size());
  for (int call = 0; call < 3; ++call) {
    MPI_Alltoall(sent.data(), 10000, MPI_INT, got.data(), 10000, MPI_INT, MPI_COMM_WORLD);
    test::check(got == sent, "the data is right");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool dumped = argc > 1;
  test::start(argc, argv);
  connect_all(test::size);
  const auto peers = static_cast<size_t>(test::size - 1);
  test::check(noted < most_secrets && count("private key") > 0, "there is a private key");
  test::check(count("shared secret") >= peers && count("pair key") >= peers &&
                  count("pre-shared key") >= peers,
              "and others");
  test::check(!is_dumped(secrets[0].at), "no dump holds the private key's page");
  if (dumped) put_into_dumps(secrets[0].at);
  for (const std::string& each : search_all()) {
    std::printf("rank %d: %s\n", test::rank, each.c_str());
    test::check(dumped, "no dump holds a secret");
  }
  connect_all(test::size);
  return test::finish("secrets");
}
