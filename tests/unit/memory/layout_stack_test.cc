// SPDX-License-Identifier: BSD-3-Clause
//
// The stack that a deep layout takes.
#include <gtest/gtest.h>
#include <pthread.h>

#include <vector>

#include "src/memory/layout.h"

namespace sluice {
namespace {

// Runs `work` in a thread with a stack of `bytes`.
void run_on_small_stack(size_t bytes, void (*work)()) {
  pthread_attr_t attributes;
  pthread_t thread;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  const auto begin = [](void* function) -> void* {
    reinterpret_cast<void (*)()>(function)();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, begin, reinterpret_cast<void*>(work)), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

// Each of 2,000 levels adds a byte before or after the nested layout.
void move_a_tower() {
  constexpr ptrdiff_t levels = 2000, middle = 2 * levels;
  Layout layout = Layout::run(1).moved(middle);
  std::vector<ptrdiff_t> places = {middle};
  for (ptrdiff_t level = 1; level < levels; ++level) {
    const bool before = level % 3 == 0;
    const ptrdiff_t own = level % 2 == 0 ? middle - 2 * level : middle + 2 * level;
    Layout::List list;
    if (before) list.append(own, Layout::run(1));
    list.append(0, layout);
    if (!before) list.append(own, Layout::run(1));
    layout = std::move(list).finish();
    places.insert(before ? places.begin() : places.end(), own);
  }
  ASSERT_EQ(layout.bytes(), static_cast<size_t>(levels));
  ASSERT_EQ(layout.start(), places[0]);
  std::vector<std::byte> memory(4 * levels), dense(levels), back(memory.size());
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7 >> 2);
  layout.pack(memory.data(), 0, 0, dense.size(), dense.data());
  layout.unpack(back.data(), 0, 0, dense.size(), dense.data());
  for (size_t i = 0; i < dense.size(); ++i) {
    ASSERT_EQ(dense[i], memory[static_cast<size_t>(places[i])]) << i;
    ASSERT_EQ(dense[i], back[static_cast<size_t>(places[i])]) << i;
  }
}

TEST(LayoutStack, TakesLittleStackHoweverDeepItIs) { run_on_small_stack(128 << 10, move_a_tower); }

}  // namespace
}  // namespace sluice
