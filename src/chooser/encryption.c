/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
#include "src/chooser/encryption.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

enum { most_bytes = 64 << 10 }; /* of a file of settings */

enum Setting { tls, enable, setting_count };
static const char* const names[] = {"SLUICE_TLS", "SLUICE_ENABLE"};

/* Empty: unset. (No value that is accepted is as long as there is room.) */
typedef char Values[setting_count][32];

struct Settings {
  Values values;
  const char* origin; /* the file that has SLUICE_TLS; null if none */
  const char* doubt;  /* a file that may demand anything; null if none */
};

enum Kind { of_name, of_user, of_site };

struct File {
  enum Kind kind;
  const char* path;
};

struct Text {
  const char *begin, *end;
};

static int is_empty(struct Text text) { return text.begin == text.end; }

static int is_blank(char c) { return c == ' ' || c == '\t'; }

static struct Text trimmed(struct Text text) {
  while (!is_empty(text) && is_blank(*text.begin)) ++text.begin;
  while (!is_empty(text) && is_blank(text.end[-1])) --text.end;
  return text;
}

static struct Text without_comment(struct Text line) {
  for (const char* at = line.begin; at < line.end; ++at) {
    if (*at == '#' && (at == line.begin || is_blank(at[-1]))) return (struct Text){line.begin, at};
  }
  return line;
}

static int has_control(struct Text text) {
  for (; !is_empty(text); ++text.begin) {
    const unsigned char c = (unsigned char)*text.begin;
    if ((c < ' ' && c != '\t') || c == 0x7f) return 1;
  }
  return 0;
}

static int is_name(struct Text text) {
  const char* at = text.begin;
  while (at < text.end && *at && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *at)) ++at;
  return !is_empty(text) && at == text.end;
}

static int is(struct Text text, const char* word) {
  const size_t length = (size_t)(text.end - text.begin);
  return length == strlen(word) && memcmp(text.begin, word, length) == 0;
}

/* Whether the line is one, and no setting's second value. */
static int take_line(struct Text line, Values values) {
  if (!is_empty(line) && line.end[-1] == '\r') --line.end;
  if (has_control(line)) return 0;
  line = trimmed(without_comment(line));
  if (is_empty(line)) return 1;
  const char* const equals = memchr(line.begin, '=', (size_t)(line.end - line.begin));
  if (!equals) return 0;
  const struct Text name = trimmed((struct Text){line.begin, equals});
  const struct Text value = trimmed((struct Text){equals + 1, line.end});
  for (int i = 0; i < setting_count; ++i) {
    if (!is(name, names[i])) continue;
    if (*values[i]) return 0;
    snprintf(values[i], sizeof values[i], "%.*s", (int)(value.end - value.begin), value.begin);
  }
  return is_name(name);
}

static int take_lines(struct Text text, Values values) {
  static const char mark[] = "\xef\xbb\xbf"; /* the byte order mark */
  const size_t length = sizeof mark - 1;
  if (text.end - text.begin >= (ptrdiff_t)length && memcmp(text.begin, mark, length) == 0) {
    text.begin += length;
  }
  while (!is_empty(text)) {
    const char* const end = memchr(text.begin, '\n', (size_t)(text.end - text.begin));
    if (!take_line((struct Text){text.begin, end ? end : text.end}, values)) return 0;
    text.begin = end ? end + 1 : text.end;
  }
  return 1;
}

static int may_be_used(const struct stat* about, enum Kind kind) {
  if (!S_ISREG(about->st_mode) || (about->st_mode & S_IWOTH) != 0) return 0;
  return kind != of_user || about->st_uid == 0 || about->st_uid == geteuid();
}

/* Bytes read, at most one more than a file of settings may have; negative if that fails. */
static ssize_t read_all(int fd, char* buffer) {
  ssize_t got = 0, more = 1;
  while (more > 0 && got <= most_bytes) {
    more = TEMP_FAILURE_RETRY(read(fd, buffer + got, (size_t)(most_bytes + 1 - got)));
    got += more;
  }
  return more < 0 ? more : got;
}

/* The size; negative if the file must not be used. */
static ssize_t read_file(const struct File* file, char* buffer) {
  struct stat about;
  const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
  const int fd = TEMP_FAILURE_RETRY(open(file->path, flags));
  if (fd < 0) return -1;
  const int is_good = fstat(fd, &about) == 0 && may_be_used(&about, file->kind);
  const ssize_t size = is_good ? read_all(fd, buffer) : -1;
  close(fd);
  return size <= most_bytes ? size : -1;
}

/* Whether there is no doubt about what the file says. One that must not be used says nothing,
 * unless it is demanded. */
static int take_file(const struct File* file, char* buffer, Values values) {
  const ssize_t size = read_file(file, buffer);
  const int is_text = size >= 0 && !memchr(buffer, '\0', (size_t)size);
  if (!is_text) return file->kind != of_name;
  return take_lines((struct Text){buffer, buffer + size}, values);
}

/* To what no source before has set. */
static void add_file(const struct File* file, struct Settings* settings) {
  Values values = {"", ""};
  char* const buffer = malloc(most_bytes + 1);
  if (!buffer || !take_file(file, buffer, values)) settings->doubt = file->path;
  free(buffer);
  if (!*settings->values[tls] && *values[tls]) settings->origin = file->path;
  for (int i = 0; i < setting_count; ++i) {
    if (!*settings->values[i]) memcpy(settings->values[i], values[i], sizeof values[i]);
  }
}

/* Empty if there is none. */
static void write_users_path(char path[PATH_MAX]) {
  const char* const folder = getenv("XDG_CONFIG_HOME");
  const char* const home = getenv("HOME");
  int length = 0;
  *path = '\0';
  if (folder && *folder == '/') {
    length = snprintf(path, PATH_MAX, "%s/sluice.conf", folder);
  } else if (home && *home == '/') {
    length = snprintf(path, PATH_MAX, "%s/.config/sluice.conf", home);
  }
  if (length >= PATH_MAX) *path = '\0';
}

static void add_files(char users_path[PATH_MAX], struct Settings* settings) {
  const int is_privileged = getauxval(AT_SECURE) != 0;
  const char* const named = is_privileged ? NULL : getenv("SLUICE_CONFIG");
  if (named && *named) {
    if (strcmp(named, "none") != 0) add_file(&(struct File){of_name, named}, settings);
    return;
  }
  write_users_path(users_path);
  if (!is_privileged) add_file(&(struct File){of_user, users_path}, settings);
  if (!settings->doubt) {
    add_file(&(struct File){of_site, SLUICE_SYSCONFDIR "/sluice.conf"}, settings);
  }
}

static void add_variables(struct Settings* settings) {
  for (int i = 0; i < setting_count; ++i) {
    const char* const value = getenv(names[i]);
    snprintf(settings->values[i], sizeof settings->values[i], "%s", value ? value : "");
  }
}

/* In letters of either case. */
static int says(const char* value, const char* word) {
  for (; *value && *word; ++value, ++word) {
    const char c = *value >= 'A' && *value <= 'Z' ? (char)(*value - 'A' + 'a') : *value;
    if (c != *word) return 0;
  }
  return *value == *word;
}

static int is_off(const struct Settings* settings) {
  const char* const value = settings->values[enable];
  return says(value, "off") || says(value, "0") || says(value, "no") || says(value, "false");
}

static int is_clear(const struct Settings* settings) {
  const char* const value = settings->values[tls];
  return says(value, "off") || strcmp(value, "default") == 0;
}

static void write_demand(const struct Settings* settings, char* text, unsigned room) {
  const char* const value = settings->values[tls];
  if (settings->doubt) {
    snprintf(text, room, "SLUICE_TLS, which %s may demand (it cannot be read, or has a mistake),",
             settings->doubt);
  } else if (settings->origin) {
    snprintf(text, room, "SLUICE_TLS=%s (%s)", value, settings->origin);
  } else {
    snprintf(text, room, "SLUICE_TLS=%s", value);
  }
}

int sluice_demands_encryption(char* text, unsigned room) {
  struct Settings settings = {{"", ""}, NULL, NULL};
  char users_path[PATH_MAX];
  add_variables(&settings);
  if (is_off(&settings) || is_clear(&settings)) return 0;
  add_files(users_path, &settings);
  const int is_set = *settings.values[tls] && !is_clear(&settings) && !is_off(&settings);
  if (!is_set && !settings.doubt) return 0;
  write_demand(&settings, text, room);
  return 1;
}
