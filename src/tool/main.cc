// SPDX-License-Identifier: BSD-3-Clause
//
// The `sluice` command. Each subcommand is an options structure and a function; this file defines
// only their command lines.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/tool/build.h"
#include "src/tool/explain.h"
#include "src/tool/info.h"
#include "src/tool/report.h"
#include "src/tool/run.h"
#include "src/tool/tune.h"

namespace {

using sluice::Status;

constexpr int exit_failed = 1, exit_usage = 2;
constexpr uint32_t most_ranks = 1024;

// The subcommand to run after parsing, and the name that its error messages begin with.
struct Chosen {
  std::string name;
  std::function<Status()> act;
};

void add_run(CLI::App& app, sluice::PreloadOptions* options, Chosen* chosen) {
  CLI::App* run = app.add_subcommand(
      "run", "start a program with Sluice preloaded, after seeing that it will take");
  run->footer(
      "Under mpirun it starts each rank: mpirun -n 4 sluice run ./app\n"
      "Of a shell script that starts python3, julia or the like, only the shell is looked at: if\n"
      "these take MPI's functions from the MPI library's handle (ctypes, cffi, MPI.jl), say so:\n"
      "mpirun -n 4 sluice run --audit ./script");
  run->add_option("--library", options->library, "the library to preload (SLUICE_LIBRARY)")
      ->type_name("PATH");
  run->add_option("--set", options->settings, "a setting, such as segment=64k or allreduce=ring")
      ->type_name("KNOB=VALUE")
      ->allow_extra_args(false);
  run->add_flag("--stats", options->stats, "print a table of what was carried (SLUICE_STATS=on)");
  CLI::Option* audit = run->add_flag(
      "--audit", [=](int64_t) { options->audit = sluice::AuditWish::yes; },
      "serve programs that take MPI's functions from the MPI library's handle, too (LD_AUDIT)");
  run->add_flag(
         "--no-audit", [=](int64_t) { options->audit = sluice::AuditWish::no; },
         "do not; unless given, interpreters such as python3 and julia are served so")
      ->excludes(audit);
  run->add_flag("--dry-run", options->dry_run, "say what would be started, and do not");
  run->add_option("PROGRAM", options->command, "what to start, and its arguments")
      ->type_name("[ARGUMENTS...]")
      ->required();
  run->positionals_at_end();  // all arguments after PROGRAM belong to it
  run->callback([=] { *chosen = {"sluice run", [=] { return sluice::run(*options); }}; });
}

void add_info(CLI::App& app, sluice::InfoOptions* options, Chosen* chosen) {
  CLI::App* info =
      app.add_subcommand("info", "print the version, settings, algorithms, rules and choices");
  info->add_flag("--knobs", options->knobs, "the settings alone: SLUICE_* variables");
  info->add_flag("--algorithms", options->algorithms, "the algorithms alone");
  info->add_flag("--rules", options->rules, "the built-in selection rules alone");
  info->add_flag("--choices", options->choices,
                 "what trials have found out alone: the file of SLUICE_CHOICE_FILE");
  info->add_flag("--json", options->json, "as JSON");
  info->callback([=] { *chosen = {"sluice info", [=] { return sluice::info(*options); }}; });
}

void add_explain(CLI::App& app, sluice::ExplainOptions* options, Chosen* chosen) {
  CLI::App* explain =
      app.add_subcommand("explain", "print and draw the steps and costs of an algorithm");
  sluice::StudyOptions* study = &options->study;
  explain->add_option("COLLECTIVE", study->collective, "such as allreduce")->required();
  explain->add_option("--algorithm", study->algorithm, "one that `sluice info --algorithms` lists")
      ->type_name("NAME")
      ->required();
  explain->add_option("--ranks", study->ranks, "number of ranks")
      ->type_name("N")
      ->required()
      ->check(CLI::Range(1U, most_ranks));
  explain
      ->add_option("--bytes", options->size,
                   "S: bytes of the vector, of the whole result "
                   "(allgather), of the whole input (alltoall)")
      ->type_name("SIZE")
      ->capture_default_str();
  explain->add_option("--element", study->element, "bytes of an element")
      ->type_name("BYTES")
      ->check(CLI::Range(1U, 4096U))
      ->capture_default_str();
  explain->add_option("--root", study->root, "the root, where there is one (0)")->type_name("R");
  explain->add_option("--radix", study->radix, "the radix of bcube and tree")
      ->type_name("K")
      ->check(CLI::Range(2U, most_ranks))
      ->capture_default_str();
  CLI::Option* hosts =
      explain->add_option("--hosts", options->hosts, "on so many hosts of so many ranks each")
          ->type_name("HOSTSxRANKS");
  explain->add_option("--placement", options->placement, "the host of each rank, such as 0,0,1,1")
      ->type_name("LIST")
      ->excludes(hosts);
  explain->add_option("--rank", options->rank, "this rank's steps alone")->type_name("R");
  explain->add_flag("--json", options->json, "as JSON");
  explain->add_option("--svg", options->svg, "draw rank against time into this file")
      ->type_name("FILE");
  explain->callback([=] {
    *chosen = {"sluice explain", [=] { return sluice::explain(*options); }};
  });
}

void add_tune(CLI::App& app, sluice::TuneOptions* options, Chosen* chosen) {
  CLI::App* tune = app.add_subcommand(
      "tune", "measure this machine and job, and write rules of what is fastest where");
  tune->footer(
      "Under mpirun: mpirun -n 4 sluice tune -o my.rules. The same command goes on where it was\n"
      "interrupted. Programs use the rules with SLUICE_RULES=my.rules.");
  tune->add_option("-o,--output", options->output, "the file of rules")
      ->type_name("FILE")
      ->capture_default_str();
  tune->add_option("--collectives", options->collectives,
                   "such as allreduce,barrier; all unless given")
      ->type_name("LIST")
      ->delimiter(',');
  tune->add_option("--ranks", options->ranks,
                   "measure on so many of the job's ranks: 2,3,4; a choice up to all unless given")
      ->type_name("LIST")
      ->delimiter(',')
      ->check(CLI::Range(2, 1 << 20));
  tune->add_option("--sizes", options->sizes,
                   "bytes: a range, with sizes between powers of two, or a list")
      ->type_name("MIN:MAX")
      ->capture_default_str();
  tune->add_option("--time", options->seconds, "seconds to measure for; 0: until all is done")
      ->type_name("S")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  tune->add_option("--rounds", options->rounds, "samples of each candidate, in turns")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  tune->add_option("--margin", options->margin,
                   "per cent that another algorithm must be faster by to take the place of the "
                   "built-in choice")
      ->type_name("P")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  tune->add_option("--log", options->log, "where measurements are kept (FILE.log)")
      ->type_name("FILE");
  tune->add_option("--svg", options->svg, "draw the winners into this file")->type_name("FILE");
  tune->add_option("--library", options->library, "the library to preload (SLUICE_LIBRARY)")
      ->type_name("PATH");
  tune->add_flag("--make", options->make, "measure nothing: make the rules of the log again");
  tune->callback([=] { *chosen = {"sluice tune", [=] { return sluice::tune(*options); }}; });
}

void add_report(CLI::App& app, sluice::ReportOptions* options, Chosen* chosen) {
  CLI::App* report = app.add_subcommand(
      "report", "make a page that says what a job's collectives took, why, and who was late");
  report->footer(
      "Of files that jobs leave with SLUICE_STATS=json:FILE. It needs python3 with matplotlib.");
  report->add_option("FILE", options->files, "one file of statistics, or two side by side")
      ->required()
      ->expected(1, 2);
  report->add_option("-o,--output", options->output, "the page (FILE.html)")->type_name("FILE");
  report->add_flag("--png", options->png, "the drawings alone, too, as a picture beside it");
  report->callback([=] { *chosen = {"sluice report", [=] { return sluice::report(*options); }}; });
}

std::string usage_error(const CLI::App* app, const CLI::Error& error) {
  std::string name = app->get_name();
  for (const CLI::App* command : app->get_subcommands()) name += " " + command->get_name();
  return name + ": error: " + error.what() + "\n`" + name + " --help` says how it is used.\n";
}

struct VersionOptions {
  bool asked = false, json = false;
};

void add_version(CLI::App& app, VersionOptions* options) {
  CLI::Option* version = app.add_flag("--version", options->asked, "print the version");
  app.add_flag("--json", options->json, "with --version: as JSON, with the MPI and the library")
      ->needs(version);
}

// The parser takes words such as [a,b] and {} for lists. Those of a program that is started are not
// its to read, so a mark keeps them whole.
constexpr char mark = '\x01';

std::string marked(const std::string& word) {
  const bool needs_mark = word.find_first_of(std::string("[{%") + mark) == 0;
  return needs_mark ? mark + word : word;
}

void unmark(std::string* word) {
  if (word->starts_with(mark)) word->erase(0, 1);
}

void unmark(sluice::PreloadOptions* run) {
  unmark(&run->library);
  for (std::string& word : run->settings) unmark(&word);
  for (std::string& word : run->command) unmark(&word);
}

// In the parser's order, the last first.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words.front() == "run") {
    std::ranges::transform(words, words.begin(), marked);
  }
  std::ranges::reverse(words);
  return words;
}

// (What was written may be lost, on a full disk. Which write failed, and why, is no longer known.)
Status end_output() {
  if (fflush(stdout) == 0 && !ferror(stdout)) return {};
  return {sluice::Code::unavailable, "cannot write all of the output"};
}

int report(const Chosen& chosen, Status status) {
  const Status output = end_output();
  if (status.ok()) status = output;
  if (status.ok()) return 0;
  fprintf(stderr, "%s: error: %s\n", chosen.name.c_str(), status.message().c_str());
  return exit_failed;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Sluice carries MPI collectives over its own algorithms and transports", "sluice");
  app.require_subcommand(0, 1);  // without a subcommand, main prints the help
  app.failure_message(usage_error);
  app.footer(
      "`sluice COMMAND --help` says more; "
      "so do the manual pages sluice(1), sluice-settings(5) and sluice(7).");
  sluice::PreloadOptions run;
  sluice::InfoOptions info;
  sluice::ExplainOptions explain;
  sluice::TuneOptions tune;
  sluice::ReportOptions page;
  VersionOptions version;
  Chosen chosen;
  add_version(app, &version);
  add_run(app, &run, &chosen);
  add_info(app, &info, &chosen);
  add_explain(app, &explain, &chosen);
  add_tune(app, &tune, &chosen);
  add_report(app, &page, &chosen);
  try {
    app.parse(words_of(argc, argv));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? report({"sluice", {}}, {}) : exit_usage;
  }
  if (version.asked) {
    sluice::print_version(version.json);
    return report({"sluice", {}}, {});
  }
  unmark(&run);
  if (chosen.act) return report(chosen, chosen.act());
  fprintf(stderr, "%s", app.help().c_str());
  return exit_usage;
}
