#include "model/home.h"

#include "base/array.h"
#include "base/text.h"

#include <stddef.h>
#include <string.h>

enum { CONTAINER_DIGITS = 64, CONTAINER_DIGITS_MIN = 4, UUID_CHARS = 36, UUID_DIGITS = 32 };

static const char *const keys[HOME_KEYS] = {"", "container", "unit", "pod", "service"};

const char *home_key_text(enum home_key key)
{
	return keys[key];
}

enum home_key home_key_of(const char *who, const char **wanted)
{
	unsigned key;
	size_t n;

	for (key = HOME_NONE + 1; key < HOME_KEYS; key++) {
		n = strlen(keys[key]);
		if (strncmp(who, keys[key], n) == 0 && who[n] == ':') {
			*wanted = who + n + 1;
			return (enum home_key)key;
		}
	}
	*wanted = who;
	return HOME_NONE;
}

size_t home_cgroup_bytes(const char *text)
{
	return strcspn(text, "\n");
}

/* ---- components of a path -------------------------------------------------------------------- */

struct part {
	const char *at;
	size_t n;
};

/* The next component towards the root; starts with the path's length in *left. */
static bool previous_part(const char *path, size_t *left, struct part *out)
{
	size_t end = *left, start;

	while (end && path[end - 1] == '/')
		end--;
	for (start = end; start && path[start - 1] != '/'; start--)
		;
	*left = start;
	*out = (struct part){path + start, end - start};
	/* systemd writes _ before names that the kernel would take for its own. */
	if (out->n && *out->at == '_')
		*out = (struct part){out->at + 1, out->n - 1};
	return end > 0;
}

static bool ends_with(const struct part *p, const char *end)
{
	size_t n = strlen(end);

	return p->n > n && memcmp(p->at + p->n - n, end, n) == 0;
}

static size_t count_digits(const char *at, size_t n)
{
	size_t i;

	for (i = 0; i < n && hex_digit(at[i]) >= 0; i++)
		;
	return i;
}

static void copy_part(char out[HOME_PART_BYTES], const char *at, size_t n)
{
	n = n < HOME_PART_BYTES ? n : HOME_PART_BYTES - 1;
	memcpy(out, at, n);
	out[n] = '\0';
}

/* "docker-ID.scope", "ID", "x.slice:cri-containerd:ID"; not "crio-conmon-ID.scope". */
static bool find_container(const struct part *p, struct part *id)
{
	static const char conmon[] = "conmon-";
	size_t n = p->n - (ends_with(p, ".scope") ? strlen(".scope") : 0), before;

	if (n < CONTAINER_DIGITS ||
	    count_digits(p->at + n - CONTAINER_DIGITS, CONTAINER_DIGITS) != CONTAINER_DIGITS)
		return false;
	before = n - CONTAINER_DIGITS;
	*id = (struct part){p->at + before, CONTAINER_DIGITS};
	if (before && !strchr("-:", p->at[before - 1]))
		return false;
	return before < strlen(conmon) ||
	       memcmp(id->at - strlen(conmon), conmon, strlen(conmon)) != 0;
}

/* A UUID, with - or _; or 32 digits, which pods out of files have. */
static bool is_uid(const char *at, size_t n)
{
	size_t i;

	if (n == UUID_DIGITS)
		return count_digits(at, n) == n;
	for (i = 0; i < n && n == UUID_CHARS; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? !strchr("-_", at[i]) || !at[i] : hex_digit(at[i]) < 0)
			return false;
	}
	return n == UUID_CHARS;
}

/* "podUID", "kubepods-podUID.slice", "kubepods-burstable-podUID.slice:cri-containerd:ID" */
static bool find_pod(const struct part *p, struct part *uid)
{
	size_t i, n;

	for (i = 0; i + strlen("pod") < p->n; i++) {
		if (memcmp(p->at + i, "pod", strlen("pod")) != 0 || (i && p->at[i - 1] != '-'))
			continue;
		uid->at = p->at + i + strlen("pod");
		n = p->n - i - strlen("pod");
		for (uid->n = 0; uid->n < n && !strchr(".:", uid->at[uid->n]); uid->n++)
			;
		if (is_uid(uid->at, uid->n))
			return true;
	}
	return false;
}

static bool is_unit(const struct part *p)
{
	return ends_with(p, ".service") || ends_with(p, ".scope");
}

static void read_part(const struct part *p, struct home *out)
{
	bool is_slice = ends_with(p, ".slice");
	char *unit = out->of[HOME_UNIT];
	struct part found;
	size_t i;

	if (!*out->of[HOME_CONTAINER] && find_container(p, &found))
		copy_part(out->of[HOME_CONTAINER], found.at, found.n);
	if (!*out->of[HOME_POD] && find_pod(p, &found)) {
		copy_part(out->of[HOME_POD], found.at, found.n);
		for (i = 0; i < found.n; i++)
			if (out->of[HOME_POD][i] == '_')
				out->of[HOME_POD][i] = '-';
	}
	/* Services and scopes before slices, which only hold them. */
	if (p->n < HOME_PART_BYTES &&
	    ((!*unit && (is_slice || is_unit(p))) ||
	     (is_unit(p) && text_ends_fold(unit, ".slice"))))
		copy_part(unit, p->at, p->n);
}

void home_read(const char *text, struct home *out)
{
	size_t left = home_cgroup_bytes(text);
	struct part p;

	memset(out, 0, sizeof(*out));
	if (text[left])
		copy_part(out->of[HOME_SERVICE], text + left + 1, strlen(text + left + 1));
	while (previous_part(text, &left, &p))
		read_part(&p, out);
}

/* ---- whether it is the wanted one ------------------------------------------------------------ */

static bool has_unit(const char *text, const char *wanted)
{
	size_t left = home_cgroup_bytes(text), n = strlen(wanted);
	struct part p;

	while (previous_part(text, &left, &p)) {
		if (p.n < n || memcmp(p.at, wanted, n) != 0)
			continue;
		if (p.n == n ? is_unit(&p) || ends_with(&p, ".slice")
			     : p.n == n + strlen(".service") && ends_with(&p, ".service"))
			return true;
	}
	return false;
}

bool home_is(const char *text, enum home_key key, const char *wanted)
{
	size_t n = strlen(wanted);
	struct home home;

	if (!n || !*text)
		return false;
	if (key == HOME_UNIT)
		return has_unit(text, wanted);
	home_read(text, &home);
	if (key == HOME_CONTAINER)
		return n >= CONTAINER_DIGITS_MIN && strncmp(home.of[key], wanted, n) == 0;
	return text_same_fold(home.of[key], wanted);
}

/* ---- /proc/PID/cgroup ------------------------------------------------------------------------ */

/* Lines are "HIERARCHY:CONTROLLERS:PATH", version 2's is "0::PATH". */
static bool find_line(const char *text, const char *controllers, struct part *path)
{
	const char *line, *end, *at;

	for (line = text; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		at = line + strspn(line, "0123456789");
		if (at == line || *at++ != ':')
			continue;
		if (controllers && strncmp(at, controllers, strlen(controllers)) != 0)
			continue;
		at += strcspn(at, ":\n");
		if (*at != ':' || end - at <= (ptrdiff_t)strlen(":/"))
			continue;
		*path = (struct part){at + 1, (size_t)(end - at - 1)};
		return true;
	}
	return false;
}

void home_put_cgroup(const char *proc_text, struct buf *out)
{
	static const char gone[] = " (deleted)";     /* a group that was removed meanwhile */
	struct part path;

	if (!find_line(proc_text, ":", &path) && !find_line(proc_text, "name=systemd:", &path) &&
	    !find_line(proc_text, NULL, &path))
		return;
	if (ends_with(&path, gone))
		path.n -= strlen(gone);
	if (path.n < HOME_TEXT_MAX - HOME_PART_BYTES)
		buf_put(out, path.at, path.n);
}
