#include "source/host/running.h"

#include "base/os_windows.h"

#include <windows.h>
#include <tlhelp32.h>

bool running_each(running_one *one, void *ctx)
{
	HANDLE list = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
	PROCESSENTRY32W entry = {.dwSize = sizeof(entry)};
	struct process_names names = {0};
	struct buf file = {0};
	BOOL more;

	if (list == INVALID_HANDLE_VALUE)
		return false;
	for (more = Process32FirstW(list, &entry); more; more = Process32NextW(list, &entry)) {
		buf_reset(&file);
		wide_put(&file, entry.szExeFile);
		names.file = buf_text(&file);
		if (file.len)
			file.data[process_name_length(file.data)] = '\0';
		one(ctx, entry.th32ProcessID, &names);
	}
	CloseHandle(list);
	buf_free(&file);
	return true;
}
