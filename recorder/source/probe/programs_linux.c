#include "source/probe/programs_linux.h"

#include "base/os.h"

#include <stdio.h>
#include <string.h>

unsigned program_files_add(struct program_files *files, const char *path, bool *is_new)
{
	struct os_file_info info;
	unsigned i;

	*is_new = false;
	if (strchr(path, ':') || os_path_info(path, &info, NULL) != 0 || !info.regular)
		return PROGRAM_FILES_MAX;
	for (i = 0; i < files->n; i++)
		if (files->dev[i] == info.dev && files->ino[i] == info.ino)
			return i;
	if (i == PROGRAM_FILES_MAX)
		return i;
	*is_new = true;
	files->dev[i] = info.dev;
	files->ino[i] = info.ino;
	return files->n++;
}

/* start-end perms pgoff major:minor inode path: only the path has a '/' */
bool program_maps(uint32_t pid, const char **at, const char *part, char *out, size_t n)
{
	const char *line = strstr(*at, part), *text = *at;
	size_t length;
	int got;

	if (!line)
		return false;
	while (line > text && line[-1] != '\n')
		line--;
	length = strcspn(line, "\n");
	*at = line + length;
	line = memchr(line, '/', length);
	if (!line)
		return false;
	got = snprintf(out, n, "/proc/%u/root%.*s", pid, (int)(*at - line), line);
	return got >= 0 && (size_t)got < n;
}
