// SPDX-License-Identifier: BSD-3-Clause
#include "osu/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>

#include "src/base/plain_text.h"

namespace sluice::osu {
namespace {

// Larger messages use a tenth of the iterations, because each call takes longer.
constexpr size_t small_message = 8192;

constexpr size_t most_offset = 65536, widest_element = 4;

[[noreturn]] void reject(const char* option, const std::string& text, const std::string& wanted) {
  throw CLI::ValidationError(option, "'" + text + "' is not " + wanted);
}

// "64", "16k", "4m", "1g".
bool parse_bytes(std::string_view text, size_t* bytes) {
  size_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, text.data() + text.size() - end);
  int shift = 0;
  if (unit.size() == 1) {
    constexpr std::string_view units = "kmg";
    size_t power = units.find(lower(unit[0]));
    if (power == units.npos) return false;
    shift = 10 * static_cast<int>(power + 1);
  }
  if (error != std::errc() || unit.size() > 1 || value > (SIZE_MAX >> shift)) return false;
  *bytes = value << shift;
  return true;
}

void read_range(const std::string& text, Options* options) {
  constexpr const char* name = "--message-size";
  constexpr const char* wanted = "[MIN:]MAX in bytes, such as 128, 2:128, 2: or 4:4m";
  size_t colon = text.find(':');
  std::string low = colon == text.npos ? "" : text.substr(0, colon);
  std::string high = colon == text.npos ? text : text.substr(colon + 1);
  if (low.empty() && high.empty()) reject(name, text, wanted);
  if (!low.empty() && !parse_bytes(low, &options->min_bytes)) reject(name, text, wanted);
  if (!high.empty() && !parse_bytes(high, &options->max_bytes)) reject(name, text, wanted);
  options->min_bytes = std::max<size_t>(options->min_bytes, 1);
  if (options->min_bytes > options->max_bytes) {
    reject(name, text, "a range: MIN is above MAX (" + std::to_string(options->max_bytes) + ")");
  }
}

// Splits a list at its commas.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> items;
  size_t begin = 0;
  for (size_t comma; (comma = text.find(',', begin)) != text.npos; begin = comma + 1) {
    items.push_back(text.substr(begin, comma - begin));
  }
  items.push_back(text.substr(begin));
  return items;
}

void read_types(const std::string& text, Options* options) {
  options->types.clear();
  std::string known = "all";
  for (const ElementType& type : element_types()) known += std::string(", ") + type.option;
  for (const std::string& each : split(text)) {
    const std::string item = lower(each);
    size_t before = options->types.size();
    for (const ElementType& type : element_types()) {
      if (item == type.option || item == "all") options->types.push_back(&type);
    }
    if (options->types.size() == before) reject("--type", item, "one of " + known);
  }
}

void read_percentiles(const std::string& text, Options* options) {
  options->percentiles.clear();
  for (const std::string& item : split(text)) {
    int value = 0;
    auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value);
    bool whole = error == std::errc() && end == item.data() + item.size();
    if (!whole || value < 1 || value > 99) reject("--tail-lat", item, "a percentile from 1 to 99");
    options->percentiles.push_back(value);
  }
  std::sort(options->percentiles.begin(), options->percentiles.end());
}

// "16", "0:16".
void read_offsets(const std::string& text, Options* options) {
  Buffers& buffers = options->buffers;
  const size_t colon = text.find(':');
  const std::string recv = colon == text.npos ? text : text.substr(colon + 1);
  if (!parse_bytes(text.substr(0, colon), &buffers.send_offset) ||
      !parse_bytes(recv, &buffers.recv_offset) ||
      std::max(buffers.send_offset, buffers.recv_offset) > most_offset ||
      (buffers.send_offset | buffers.recv_offset) % widest_element != 0) {
    reject("--offset", text, "[SEND:]RECV, multiples of 4 up to " + std::to_string(most_offset));
  }
}

// A word after -d, for both sides or for one.
bool parse_place(const std::string& word, Place* place) {
  constexpr std::pair<const char*, Place> words[] = {
      {"host", Place::host},     {"H", Place::host},          {"cuda", Place::device},
      {"D", Place::device},      {"managed", Place::managed}, {"M", Place::managed},
      {"pinned", Place::pinned}, {"P", Place::pinned}};
  for (const auto& [known, meant] : words) {
    if (word == known) return *place = meant, true;
  }
  return false;
}

// "cuda", "D H", "cuda D H".
void read_places(std::vector<std::string> words, Options* options) {
  constexpr const char* wanted =
      "[cuda] SEND RECV, each D, H, M or P; or one of cuda, managed, pinned, host";
  Buffers& buffers = options->buffers;
  if (words.size() == 3 && words[0] == "cuda") words.erase(words.begin());
  if (words.size() > 2) reject("--accelerator", words[2], wanted);
  if (!parse_place(words[0], &buffers.send)) reject("--accelerator", words[0], wanted);
  if (!parse_place(words.back(), &buffers.recv)) reject("--accelerator", words.back(), wanted);
}

void read_memory_limit(const std::string& text, Options* options) {
  if (!parse_bytes(text, &options->memory_limit) || options->memory_limit == 0) {
    reject("--mem-limit", text, "a number of bytes, such as 536870912 or 512m");
  }
}

void add_sizes(CLI::App* app, Options* options) {
  auto range = [options](const std::string& text) { read_range(text, options); };
  app->add_option_function<std::string>(
         "-m,--message-size", range,
         "smallest and largest message in bytes; sizes double from MIN (default 1:1048576)")
      ->type_name("[MIN:]MAX");
  auto limit = [options](const std::string& text) { read_memory_limit(text, options); };
  app->add_option_function<std::string>("-M,--mem-limit", limit,
                                        "most memory for buffers of one rank (default 536870912)")
      ->type_name("BYTES");
  auto types = [options](const std::string& text) { read_types(text, options); };
  app->add_option_function<std::string>(
         "-T,-t,--type", types, "element types: all, or some of mpi_char, mpi_int, mpi_float")
      ->type_name("TYPE[,TYPE]");
}

void add_buffers(CLI::App* app, const Function& function, Options* options) {
  if (!function.flow.moves_data()) return;
  if (function.flow.takes_in_place()) {
    app->add_flag("-l,--in-place", options->buffers.in_place, "call with MPI_IN_PLACE");
  }
  auto offsets = [options](const std::string& text) { read_offsets(text, options); };
  app->add_option_function<std::string>(
         "--offset", offsets,
         "bytes into a page at which buffers begin (default 0; what malloc gives large ones: 16)")
      ->type_name("[SEND:]RECV");
  auto places = [options](const std::vector<std::string>& words) { read_places(words, options); };
  app->add_option_function<std::vector<std::string>>(
         "-d,--accelerator", places,
         "where buffers are: cuda (on a device), managed, pinned or host; or a letter for the "
         "send\n"
         "and one for the receive buffers: D (device), H (host), M (managed), P (pinned)")
      ->type_name("TYPE | SEND RECV")
      ->expected(1, 3);
}

void add_counts(CLI::App* app, Options* options) {
  app->add_option_function<int>(
         "-i,--iterations", [options](int n) { options->iterations = n; },
         "timed calls at each size (default 1000; 100 above 8192 bytes)")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 30));
  app->add_option_function<int>(
         "-x,--warmup", [options](int n) { options->warmup = n; },
         "calls before them that are not timed (default 100; 10 above 8192 bytes)")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 30));
}

void add_output(CLI::App* app, Options* options) {
  app->add_flag("-f,--full", options->full,
                "print the smallest and largest of the ranks' averages and the iterations too");
  app->add_flag("-c,--validation", options->validate,
                "check the contents after every call; stop with status 1 where they are wrong");
  app->add_option("-u,--validation-warmup", options->validation_warmup,
                  "with -c: checked calls before each timed one (default 5)")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 20));
  auto tail = [options](const std::string& text) { read_percentiles(text, options); };
  app->add_option_function<std::string>("-z,--tail-lat", tail,
                                        "print percentiles of the single calls' latency too, "
                                        "averaged over ranks; attach the list\n"
                                        "to the option: -z10,50,90 (default 50,90,99)")
      ->type_name("[P,...]")
      ->default_str("50,90,99")
      ->expected(0, 1);
}

}  // namespace

int Options::iterations_for(size_t bytes) const {
  return iterations.value_or(bytes > small_message ? 100 : 1000);
}

int Options::warmup_for(size_t bytes) const {
  return warmup.value_or(bytes > small_message ? 10 : 100);
}

Parsed parse_options(const Function& function, int argc, char** argv) {
  Options options;
  options.types = {&element_types().front()};
  std::string program = std::string("osu_") + function.name;
  CLI::App app("Latency of MPI_" + std::string(function.mpi_name) + ", averaged over ranks.",
               program);
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag("-v,--version", title(function), "print the version");
  add_sizes(&app, &options);
  add_counts(&app, &options);
  add_buffers(&app, function, &options);
  add_output(&app, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {std::nullopt, app.help(), 0};
  } catch (const CLI::CallForVersion& version) {
    return {std::nullopt, std::string(version.what()) + "\n", 0};
  } catch (const CLI::ParseError& error) {
    return {std::nullopt, program + ": " + error.what() + " (-h lists the options)\n", 1};
  }
  return {options, "", 0};
}

}  // namespace sluice::osu
