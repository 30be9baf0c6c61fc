/*
 * A program whose stacks are known: THREADS threads, number i of them i % 12 + 1 calls of descend()
 * deep, named "worker i"; at the bottom they wait in wait_here(), or with "busy" they go up and
 * down all the time.
 *
 *	threads THREADS READY_FILE [busy]
 *
 * READY_FILE is there once all have arrived. Ends after 300 s.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#define KEPT __attribute__((noinline))

enum { DEPTHS = 12, LIFE_MS = 300000 };

typedef HRESULT WINAPI set_description(HANDLE thread, PCWSTR text);

static HANDLE never;
static volatile LONG arrived;
static volatile LONG sink;
static BOOL is_busy;

KEPT static void wait_here(void)
{
	InterlockedIncrement(&arrived);
	WaitForSingleObject(never, INFINITE);
	sink++;
}

/* Different frames: some registers to keep, and on every third level an array. */
KEPT static LONG descend(LONG depth)
{
	volatile char room[200];
	LONG below;

	room[depth % 200] = (char)depth;
	if (depth > 1)
		below = descend(depth - 1);
	else if (is_busy)
		below = sink++;
	else
		wait_here(), below = 0;
	return below + room[depth % 200] + sink;
}

static DWORD WINAPI thread_main(void *number)
{
	LONG depth = (LONG)(LONG_PTR)number % DEPTHS + 1;

	if (is_busy)
		InterlockedIncrement(&arrived);
	do
		sink += descend(depth);
	while (is_busy);
	return 0;
}

static void start(int number)
{
	FARPROC found = GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "SetThreadDescription");
	HANDLE thread = CreateThread(NULL, 65536, thread_main, (void *)(LONG_PTR)number,
				     STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
	set_description *set;
	wchar_t name[32];

	memcpy(&set, &found, sizeof(set));
	swprintf(name, 32, L"worker %d", number);
	if (!thread)
		exit(1);
	if (set)
		set(thread, name);
}

int main(int argc, char **argv)
{
	int i, n = argc > 2 ? atoi(argv[1]) : 0;
	FILE *ready;

	if (n < 1)
		return 2;
	is_busy = argc > 3;
	never = CreateEventW(NULL, TRUE, FALSE, NULL);
	for (i = 0; i < n; i++)
		start(i);
	while (arrived < n)
		Sleep(1);
	ready = fopen(argv[2], "w");
	if (!ready)
		return 1;
	fprintf(ready, "%lu\n", GetCurrentProcessId());
	fclose(ready);
	Sleep(LIFE_MS);
	return 0;
}
