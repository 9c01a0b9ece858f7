// SPDX-License-Identifier: BSD-3-Clause
//
// Tells whether the libraries of a module call their own functions. The module shares a library
// with the program if the program has loaded it before. If the program, or a library before it,
// exports functions of the same names, the loader has bound the library's calls to those
// (interposition). BoringSSL before OpenSSL is a case: OpenSSL then works on another library's
// objects, and crashes. RTLD_DEEPBIND helps only libraries that the module itself brings.
//
// A call goes through a slot that a dynamic relocation names. This examines the slots of all
// libraries that the module needs, except libc and others that this library needs itself. (The
// module's own slots are right, because it has not been loaded before.) A slot is wrong if it leads
// out of these libraries although one of them defines the function. If it is not bound yet (lazy
// binding), the function that the loader would find now counts.
//
// Some slots always count as right. None of the libraries defines the function (the program's
// allocator). Its definition is weak, so any object may replace it (C++ inline functions, operator
// new). It is data, which a program may have copied. It is the address of a function in a program
// that is not position-independent. Two cases are missed: bindings that only a lazy look-up among
// libraries opened by RTLD_LOCAL would make, and libraries with symbol versions, which are assumed
// to differ.
#pragma once

#include <string>

namespace sluice {

// What is bound to another object's function.
struct Interposition {
  std::string library;   // the path of the one that calls
  std::string function;  // the name
  std::string by;        // the path of the library whose function is called; empty: the program's

  bool found() const { return !library.empty(); }
};

// The first that is found. module: from dlmopen, stays open. Thread-safe. Takes about 0.1 ms, and a
// microsecond more for each function that is not bound yet. May throw std::bad_alloc.
Interposition find_interposition(void* module);

}  // namespace sluice
