// SPDX-License-Identifier: BSD-3-Clause
#include "src/base/knobs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace sluice {
namespace {

using Settings = std::map<std::string, std::string>;

Environment environment_of(const Settings& settings) {
  return [settings](const char* name) -> const char* {
    const auto found = settings.find(name);
    return found == settings.end() ? nullptr : found->second.c_str();
  };
}

const Knob& row(const std::string& name) {
  for (const Knob& knob : knob_table()) {
    if (name == knob.name) return knob;
  }
  ADD_FAILURE() << name << " is not in the table";
  return knob_table()[0];
}

Status read_one(const std::string& name, const std::string& value, Knobs* knobs) {
  return read_knobs(environment_of({{name, value}}), knobs);
}

std::string value_of(const Settings& settings, const std::string& name) {
  for (const KnobValue& each : knob_values(environment_of(settings))) {
    if (name == each.knob->name) return each.value;
  }
  return "(no such row)";
}

// A file with the given text; removed with the object.
class TextFile {
 public:
  explicit TextFile(const std::string& text) {
    const int fd = mkstemp(path_);
    EXPECT_GE(fd, 0);
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(fd);
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile() { unlink(path_); }
  std::string path() const { return path_; }

 private:
  char path_[32] = "/tmp/sluice-knobs-XXXXXX";
};

TEST(Knobs, TableIsWellFormed) {
  std::set<std::string> names;
  std::set<size_t> algorithms;
  for (const Knob& knob : knob_table()) {
    EXPECT_TRUE(names.insert(knob.name).second) << knob.name << " twice";
    EXPECT_EQ(std::string(knob.name).rfind("SLUICE_", 0), 0U) << knob.name;
    EXPECT_STRNE(knob.help, "") << knob.name;
    EXPECT_STRNE(knob.range, "") << knob.name;
    if (const auto* index = std::get_if<uint32_t>(&knob.field)) algorithms.insert(*index);
  }
  EXPECT_EQ(algorithms.size(), std::size(Knobs().algorithm));
  EXPECT_EQ(*algorithms.rbegin() + 1, algorithms.size());
}

// (Errors tell what a setting takes by its type.)
TEST(Knobs, SizesAreBytes) {
  for (const Knob& knob : knob_table()) {
    if (knob.type != KnobType::size) continue;
    EXPECT_NE(std::string(knob.help).find("byte"), std::string::npos) << knob.name;
  }
}

TEST(Knobs, DefaultsOfTableAndStructureAgree) {
  Knobs read;
  read.segment = 1;  // must be overwritten
  ASSERT_TRUE(read_knobs(environment_of({}), &read).ok());
  const Knobs fresh;
  EXPECT_EQ(read.enable, fresh.enable);
  EXPECT_EQ(read.log, fresh.log);
  EXPECT_EQ(read.stats, fresh.stats);
  EXPECT_EQ(read.transport, fresh.transport);
  EXPECT_EQ(read.on_mismatch, fresh.on_mismatch);
  EXPECT_EQ(read.setup_timeout, fresh.setup_timeout);
  EXPECT_EQ(read.warn_after, fresh.warn_after);
  EXPECT_EQ(read.timeout, fresh.timeout);
  EXPECT_EQ(read.connect_timeout, fresh.connect_timeout);
  EXPECT_EQ(read.peer_timeout, fresh.peer_timeout);
  EXPECT_EQ(read.segment, fresh.segment);
  EXPECT_EQ(read.window, fresh.window);
  EXPECT_EQ(read.interfaces, fresh.interfaces);
  EXPECT_EQ(read.address_family, fresh.address_family);
  EXPECT_EQ(read.streams, fresh.streams);
  EXPECT_EQ(read.socket_buffer, fresh.socket_buffer);
  EXPECT_EQ(read.congestion, fresh.congestion);
  EXPECT_EQ(read.spin, fresh.spin);
  EXPECT_EQ(read.radix, fresh.radix);
  EXPECT_EQ(read.rules, fresh.rules);
  EXPECT_EQ(read.library, fresh.library);
  for (const std::string& name : read.algorithm) EXPECT_EQ(name, "");
}

TEST(Knobs, EveryTypeIsRead) {
  const Settings settings = {
      {"SLUICE_STATS", "on"},       {"SLUICE_LOG", "DEBUG"},
      {"SLUICE_WARN_AFTER", "0.5"}, {"SLUICE_SEGMENT", "64K"},
      {"SLUICE_SPIN", "-1"},        {"SLUICE_TCP_INTERFACES", "^lo,10.0.0.0/8"},
      {"SLUICE_BCAST", "chain"},    {"SLUICE_BARRIER", "mpi"}};
  Knobs knobs;
  const Status status = read_knobs(environment_of(settings), &knobs);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(knobs.stats, "on");
  EXPECT_EQ(knobs.log, "debug");
  EXPECT_EQ(knobs.warn_after, 0.5);
  EXPECT_EQ(knobs.segment, 65536U);
  EXPECT_EQ(knobs.spin, -1);
  EXPECT_EQ(knobs.interfaces, "^lo,10.0.0.0/8");
  EXPECT_EQ(knobs.algorithm[2], "chain");
  EXPECT_EQ(knobs.algorithm[14], "mpi");
}

TEST(Knobs, StatisticsMayNameAFile) {
  for (const char* text : {"json:/a/b", "prometheus:c.prom", "json:a:b"}) {
    Knobs knobs;
    EXPECT_TRUE(read_one("SLUICE_STATS", text, &knobs).ok()) << text;
    EXPECT_EQ(knobs.stats, text);
    EXPECT_TRUE(knobs.counts_calls() && knobs.counts_in_file());
  }
  for (const char* text : {"json:", "prometheus:", "xml:a", "json", "JSON:a", "json:~other/a"}) {
    Knobs knobs;
    EXPECT_FALSE(read_one("SLUICE_STATS", text, &knobs).ok()) << text;
  }
  Knobs knobs;
  const Settings settings = {{"SLUICE_STATS", "json:~/a"}, {"HOME", "/home/me"}};
  ASSERT_TRUE(read_knobs(environment_of(settings), &knobs).ok());
  EXPECT_EQ(knobs.stats, "json:/home/me/a");
  ASSERT_TRUE(read_one("SLUICE_STATS", "on", &knobs).ok());
  EXPECT_TRUE(knobs.counts_calls() && !knobs.counts_in_file());
}

TEST(Knobs, BooleansInEverySpelling) {
  for (const char* text : {"1", "on", "yes", "true", "On", "TRUE"}) {
    Knobs knobs;
    EXPECT_TRUE(read_one("SLUICE_STATS", text, &knobs).ok()) << text;
    EXPECT_EQ(knobs.stats, "on") << text;
  }
  for (const char* text : {"0", "off", "no", "false", "OFF"}) {
    Knobs knobs;
    EXPECT_TRUE(read_one("SLUICE_ENABLE", text, &knobs).ok()) << text;
    EXPECT_FALSE(knobs.enable) << text;
  }
}

TEST(Knobs, EmptyCountsAsUnset) {
  Knobs knobs;
  EXPECT_TRUE(read_one("SLUICE_SEGMENT", "", &knobs).ok());
  EXPECT_EQ(knobs.segment, Knobs().segment);
}

TEST(Knobs, RangesAreInclusiveAndEnforced) {
  Knobs knobs;
  EXPECT_TRUE(read_one("SLUICE_SEGMENT", "4k", &knobs).ok());
  EXPECT_TRUE(read_one("SLUICE_SEGMENT", "16m", &knobs).ok());
  EXPECT_FALSE(read_one("SLUICE_SEGMENT", "4095", &knobs).ok());
  EXPECT_FALSE(read_one("SLUICE_SEGMENT", "16777217", &knobs).ok());
  EXPECT_TRUE(read_one("SLUICE_TCP_BUFFER", "0", &knobs).ok());
  EXPECT_FALSE(read_one("SLUICE_TCP_BUFFER", "1", &knobs).ok());
  EXPECT_TRUE(read_one("SLUICE_TCP_FAMILY", "6", &knobs).ok());
  EXPECT_FALSE(read_one("SLUICE_TCP_FAMILY", "5", &knobs).ok());
}

TEST(Knobs, PortsAreOneOrARange) {
  const std::tuple<const char*, int, int> good[] = {
      {"50000", 50000, 50000}, {"50000-50100", 50000, 50100}, {"1-65535", 1, 65535}, {"7-7", 7, 7}};
  for (const auto& [text, first, last] : good) {
    Knobs knobs;
    PortRange ports;
    EXPECT_TRUE(read_one("SLUICE_TCP_PORTS", text, &knobs).ok()) << text;
    EXPECT_EQ(knobs.ports, text);
    ASSERT_TRUE(parse_ports(knobs.ports, &ports)) << text;
    EXPECT_EQ(ports.first, first);
    EXPECT_EQ(ports.last, last);
  }
}

TEST(Knobs, BadValueNamesVariableValueAndRange) {
  const std::pair<const char*, const char*> bad[] = {
      {"SLUICE_ENABLE", "maybe"},      {"SLUICE_SEGMENT", "lots"},
      {"SLUICE_SEGMENT", "-1"},        {"SLUICE_SEGMENT", "4 k"},
      {"SLUICE_SPIN", "1e3"},          {"SLUICE_SPIN", "99999999999"},
      {"SLUICE_WARN_AFTER", "nan"},    {"SLUICE_WARN_AFTER", "-1"},
      {"SLUICE_WARN_AFTER", "30s"},    {"SLUICE_LOG", "loud"},
      {"SLUICE_ALLREDUCE", "Ring"},    {"SLUICE_ALLREDUCE", "ring "},
      {"SLUICE_TRANSPORT", "pigeons"}, {"SLUICE_RADIX", "1"},
      {"SLUICE_CHOICE", "online"},     {"SLUICE_TCP_PORTS", "0"},
      {"SLUICE_TCP_PORTS", "65536"},   {"SLUICE_TCP_PORTS", "9-8"},
      {"SLUICE_TCP_PORTS", "9-"},      {"SLUICE_TCP_PORTS", "-9"},
      {"SLUICE_TCP_PORTS", "9,8"},     {"SLUICE_TCP_PORTS", "9 - 10"}};
  for (const auto& [name, value] : bad) {
    Knobs knobs;
    knobs.segment = 12345;
    const Status status = read_one(name, value, &knobs);
    ASSERT_FALSE(status.ok()) << name << "=" << value;
    EXPECT_EQ(status.code(), Code::invalid);
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(value), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(row(name).range), std::string::npos) << status.message();
    EXPECT_EQ(knobs.segment, 12345U) << "set although it failed";
  }
}

TEST(Knobs, FormerValuesSayWhatReplacesThem) {
  Knobs knobs;
  EXPECT_TRUE(read_one("SLUICE_CHOICE", "online", &knobs)
                  .message()
                  .ends_with("; free is what tries other algorithms"));
  EXPECT_TRUE(
      read_one("SLUICE_CHOICE", "onlin", &knobs).message().ends_with("(rules, guard, free)"));
}

TEST(Knobs, UnknownNamesGetTheNearest) {
  const char* const variables[] = {
      "PATH=/bin",      "SLUICE_SEGMNT=1k",        "SLUICE_ALL_REDUCE=ring",
      "SLUICE_RADIX=2", "SLUICE_QUOKKA_HABITAT=x", "SLUICE_QUOKKA=",
      nullptr};
  EXPECT_TRUE(unknown_knobs(nullptr).empty()) << "after clearenv()";
  const std::vector<std::string> lines = unknown_knobs(variables);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_NE(lines[0].find("did you mean SLUICE_SEGMENT?"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find("did you mean SLUICE_ALLREDUCE?"), std::string::npos) << lines[1];
  EXPECT_NE(lines[2].find("SLUICE_QUOKKA_HABITAT"), std::string::npos) << lines[2];
  EXPECT_EQ(lines[2].find("did you mean"), std::string::npos) << lines[2];
}

TEST(Knobs, EmptyVariablesCountAsUnset) {
  Settings empty, none;
  for (const KnobValue& each : knob_values(environment_of({}))) empty[each.knob->name] = "";
  ASSERT_GT(empty.size(), 20U);
  const Environment of_empty = environment_of(empty), of_none = environment_of(none);
  Knobs knobs;
  EXPECT_TRUE(read_knobs(of_empty, &knobs).ok());
  EXPECT_EQ(agreed_settings(of_empty), agreed_settings(of_none));
  EXPECT_FALSE(is_switched_off(of_empty));
  const auto values = knob_values(of_empty), defaults = knob_values(of_none);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i].value, defaults[i].value) << values[i].knob->name;
    EXPECT_TRUE(values[i].is_default()) << values[i].knob->name;
  }
}

TEST(Knobs, ValuesAreCanonicalAndSayTheirOrigin) {
  const Settings settings = {
      {"SLUICE_STATS", "yes"}, {"SLUICE_WINDOW", "1048576"}, {"SLUICE_TIMEOUT", "2.50"}};
  EXPECT_EQ(value_of(settings, "SLUICE_STATS"), "on");
  EXPECT_EQ(value_of(settings, "SLUICE_WINDOW"), "1m");
  EXPECT_EQ(value_of(settings, "SLUICE_TIMEOUT"), "2.5");
  EXPECT_EQ(value_of(settings, "SLUICE_SEGMENT"), "256k");
  EXPECT_EQ(value_of({{"SLUICE_SEGMENT", "lots"}}, "SLUICE_SEGMENT"), "lots");
  for (const KnobValue& each : knob_values(environment_of(settings))) {
    EXPECT_EQ(each.origin, settings.count(each.knob->name) == 1 ? "environment" : "default");
  }
}

TEST(Knobs, AgreedSettingsAreCanonical) {
  EXPECT_EQ(agreed_settings(environment_of({{"SLUICE_SEGMENT", "262144"}})),
            agreed_settings(environment_of({})));
  EXPECT_NE(agreed_settings(environment_of({{"SLUICE_SEGMENT", "64k"}})),
            agreed_settings(environment_of({})));
  EXPECT_EQ(agreed_settings(environment_of({{"SLUICE_LOG", "debug"}})),
            agreed_settings(environment_of({})));
  const std::set<std::string> agreed = {
      "SLUICE_REPRODUCIBLE",  "SLUICE_TRANSPORT",   "SLUICE_SEGMENT",
      "SLUICE_WINDOW",        "SLUICE_RADIX",       "SLUICE_RULES",
      "SLUICE_ALLREDUCE",     "SLUICE_REDUCE",      "SLUICE_BCAST",
      "SLUICE_ALLGATHER",     "SLUICE_ALLGATHERV",  "SLUICE_REDUCE_SCATTER",
      "SLUICE_SCAN",          "SLUICE_EXSCAN",      "SLUICE_GATHER",
      "SLUICE_GATHERV",       "SLUICE_SCATTER",     "SLUICE_SCATTERV",
      "SLUICE_ALLTOALL",      "SLUICE_ALLTOALLV",   "SLUICE_BARRIER",
      "SLUICE_GROUPS",        "SLUICE_SINGLE_COPY", "SLUICE_CUDA",
      "SLUICE_TLS",           "SLUICE_TLS_LOCAL",   "SLUICE_VERBS_RING",
      "SLUICE_VERBS_LOCAL",   "SLUICE_NCCL",        "SLUICE_NCCL_LEAST",
      "SLUICE_CHOICE",        "SLUICE_CUDA_IPC",    "SLUICE_CUDA_IPC_LEAST",
      "SLUICE_CUDA_IPC_SLAB", "SLUICE_TCP_STREAMS", "SLUICE_NONBLOCKING"};
  const std::string settings = agreed_settings(environment_of({}));
  for (const Knob& knob : knob_table()) {
    const bool listed = settings.find(std::string(knob.name) + "=") != std::string::npos;
    EXPECT_EQ(listed, agreed.count(knob.name) == 1) << knob.name;
  }
}

TEST(Knobs, RulesAreComparedByContent) {
  const TextFile one("allreduce -> ring\n"), same("allreduce -> ring\n"), other("barrier -> mpi\n");
  const auto settings = [](const std::string& path) {
    return agreed_settings(environment_of({{"SLUICE_RULES", path}}));
  };
  EXPECT_EQ(settings(one.path()), settings(same.path()));
  EXPECT_NE(settings(one.path()), settings(other.path()));
  EXPECT_NE(settings(one.path()), settings(""));
  EXPECT_NE(settings("/nonexistent/rules").find("cannot read /nonexistent/rules: No such file"),
            std::string::npos);
  EXPECT_NE(settings("/dev/zero").find("cannot read /dev/zero: "), std::string::npos);
  EXPECT_NE(settings("/").find("cannot read /: Is a directory"), std::string::npos);
  EXPECT_EQ(settings(one.path()).find(one.path()), std::string::npos);
}

TEST(Knobs, Sizes) {
  size_t bytes = 0;
  EXPECT_TRUE(parse_size("65536", &bytes) && bytes == 65536);
  EXPECT_TRUE(parse_size("128k", &bytes) && bytes == 128 << 10);
  EXPECT_TRUE(parse_size("4M", &bytes) && bytes == 4 << 20);
  EXPECT_TRUE(parse_size("1g", &bytes) && bytes == 1 << 30);
  for (const char* text : {"-1", "", "k", "1kb", "1.5k", " 1", "1 ", "99999999999999999999",
                           "18446744073709551615k"}) {
    EXPECT_FALSE(parse_size(text, &bytes)) << text;
  }
  for (const char* text : {"0", "1", "1023", "1k", "1025", "1536k", "3m", "2g", "1025m"}) {
    ASSERT_TRUE(parse_size(text, &bytes));
    EXPECT_EQ(format_size(bytes), text);
  }
}

TEST(Knobs, PathsMayBeginWithTheHomeFolder) {
  const auto path_of = [](const std::string& value, const std::string& home) {
    Knobs knobs;
    const Settings settings{{"SLUICE_CHOICE_FILE", value}, {"HOME", home}};
    const Status status = read_knobs(environment_of(settings), &knobs);
    return status.ok() ? knobs.choice_file : status.message();
  };
  for (const char* home : {"~", "$HOME", "${HOME}"}) {
    EXPECT_EQ(path_of(std::string(home) + "/a b/~x", "/home/u"), "/home/u/a b/~x");
    EXPECT_EQ(path_of(home, "/home/u"), "/home/u");
    EXPECT_NE(path_of(std::string(home) + "/x", "").find("if HOME is set"), std::string::npos);
  }
  for (const char* plain : {"/tmp/~/x", "x$HOME/y", "./~x", "x~"}) {
    EXPECT_EQ(path_of(plain, "/home/u"), plain);
  }
  for (const char* other : {"~root/x", "$SCRATCH/x", "$HOMES/x"}) {
    EXPECT_EQ(path_of(other, "/home/u"),
              std::string("SLUICE_CHOICE_FILE=") + other +
                  " is not accepted: it takes a path, which may begin with ~/ or $HOME/ if HOME is "
                  "set (a file's path)");
  }
}

TEST(Knobs, AChoiceMayBeANumberToo) {
  Knobs knobs;
  EXPECT_TRUE(read_one("SLUICE_GROUPS", "OFF", &knobs).ok());
  EXPECT_EQ(knobs.groups, "off");
  EXPECT_TRUE(read_one("SLUICE_GROUPS", "016", &knobs).ok());
  EXPECT_EQ(knobs.groups, "16");
  for (const char* bad : {"1", "0", "-2", "4097", "2 to 4096", "on", "4k"}) {
    EXPECT_FALSE(read_one("SLUICE_GROUPS", bad, &knobs).ok()) << bad;
  }
  EXPECT_EQ(Knobs().streams, "1");
  EXPECT_TRUE(read_one("SLUICE_TCP_STREAMS", "auto", &knobs).ok());
  EXPECT_EQ(knobs.streams, "auto");
  EXPECT_TRUE(read_one("SLUICE_TCP_STREAMS", "16", &knobs).ok());
  EXPECT_EQ(knobs.streams, "16");
  for (const char* bad : {"0", "17", "many"}) {
    EXPECT_FALSE(read_one("SLUICE_TCP_STREAMS", bad, &knobs).ok()) << bad;
  }
}

}  // namespace
}  // namespace sluice
