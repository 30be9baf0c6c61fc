/*
 * Tools of Windows that Wine lacks or has as empty shells, as far as tests/windows-acceptance.cmd
 * uses them: one program under their names.
 *
 *	findstr [/l] [/b] /c:TEXT|TEXT FILE...   real: lines with TEXT (/b: at their beginning);
 *	                                         1 = none
 *	logman query -ets                        the sessions of the stand-in for ETW
 *	                                         (STANDIN_MACHINE)
 *	wpr -profileint                          its sampling interval
 *	any other                                does nothing, well
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static int findstr(int argc, char **argv)
{
	const char *text = NULL;
	int begins = 0, found = 0, i;
	char line[4096];
	FILE *file;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "/b"))
			begins = 1;
		else if (!strncmp(argv[i], "/c:", 3))
			text = argv[i] + 3;
		else if (argv[i][0] != '/' && !text)
			text = argv[i];
		else if (argv[i][0] != '/' && (file = fopen(argv[i], "r")) != NULL) {
			while (fgets(line, sizeof(line), file)) {
				char *at = strstr(line, text);

				if (at && (!begins || at == line)) {
					fputs(line, stdout);
					found = 1;
				}
			}
			fclose(file);
		}
	}
	return !found;
}

static int logman(const char *machine)
{
	char path[512];
	WIN32_FIND_DATAA entry;
	HANDLE find;

	snprintf(path, sizeof(path), "%s/session *", machine);
	find = FindFirstFileA(path, &entry);
	if (find == INVALID_HANDLE_VALUE)
		return 0;
	do
		puts(entry.cFileName + strlen("session "));
	while (FindNextFileA(find, &entry));
	FindClose(find);
	return 0;
}

static int wpr(const char *machine)
{
	char path[512], text[64] = "10000";
	FILE *file;

	snprintf(path, sizeof(path), "%s/interval", machine);
	file = fopen(path, "r");
	if (file) {
		if (!fgets(text, sizeof(text), file))
			text[0] = '\0';
		fclose(file);
	}
	printf("Current sampled profile interval [100ns]: %s\n", text);
	return 0;
}

int main(int argc, char **argv)
{
	const char *machine = getenv("STANDIN_MACHINE");
	char self[MAX_PATH], *name;

	GetModuleFileNameA(NULL, self, sizeof(self));
	name = strrchr(self, '\\');
	name = name ? name + 1 : self;
	if (!_stricmp(name, "findstr.exe"))
		return findstr(argc, argv);
	if (!_stricmp(name, "logman.exe") && machine)
		return logman(machine);
	if (!_stricmp(name, "wpr.exe") && machine)
		return wpr(machine);
	return 0;
}
