/*
 * A stand-in for the Windows event log, for tests under Wine: in the place of wevtapi.dll it gives
 * the events of a file, 300 ms after a channel was subscribed to.
 *
 *	STANDIN_EVENTS  lines of channel, provider, id, level, keywords (hex), message, with tabs
 *	                between; the message of a provider that is not installed is "!" and its
 *	                strings
 *	STANDIN_ETW     set: loads tdh.dll as well, for commands that look at sessions without
 *	                recording
 *
 * The channels that the file names exist, and "Locked", which is closed to everybody.
 */
#include <windows.h>
#include <winevt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES 16
#define EXPORT __declspec(dllexport)

struct line {
	wchar_t channel[64], provider[64], message[256];
	unsigned id, level;
	unsigned long long keywords;
};

struct subscription {
	wchar_t channel[64];
	HANDLE signal;
	ULONGLONG start_ms;
	int next;
};

static struct line lines[LINES];
static int nlines;

static void load(void)
{
	const char *name = getenv("STANDIN_EVENTS");
	FILE *file = name ? fopen(name, "r") : NULL;
	char text[512], channel[64], provider[64], message[256];

	while (file && nlines < LINES && fgets(text, sizeof(text), file)) {
		struct line *l = &lines[nlines];

		if (sscanf(text, "%63[^\t]\t%63[^\t]\t%u\t%u\t%llx\t%255[^\r\n]", channel, provider,
			   &l->id, &l->level, &l->keywords, message) != 6)
			continue;
		MultiByteToWideChar(CP_UTF8, 0, channel, -1, l->channel, 64);
		MultiByteToWideChar(CP_UTF8, 0, provider, -1, l->provider, 64);
		MultiByteToWideChar(CP_UTF8, 0, message, -1, l->message, 256);
		nlines++;
	}
	if (file)
		fclose(file);
}

static DWORD WINAPI signal_later(void *ctx)
{
	struct subscription *s = ctx;

	Sleep(300);
	SetEvent(s->signal);
	return 0;
}

EXPORT EVT_HANDLE WINAPI EvtSubscribe(EVT_HANDLE session, HANDLE signal, LPCWSTR channel,
				      LPCWSTR query, EVT_HANDLE bookmark, PVOID context,
				      EVT_SUBSCRIBE_CALLBACK callback, DWORD flags)
{
	struct subscription *s = calloc(1, sizeof(*s));
	int i;

	(void)session;
	(void)bookmark;
	(void)context;
	for (i = 0; i < nlines && _wcsicmp(lines[i].channel, channel); i++)
		;
	if (i == nlines || callback || wcscmp(query, L"*") || flags != EvtSubscribeToFutureEvents) {
		SetLastError(_wcsicmp(channel, L"Locked") ? ERROR_EVT_CHANNEL_NOT_FOUND
							  : ERROR_ACCESS_DENIED);
		return NULL;
	}
	wcscpy(s->channel, channel);
	s->signal = signal;
	s->start_ms = GetTickCount64();
	CloseHandle(CreateThread(NULL, 0, signal_later, s, 0, NULL));
	return s;
}

EXPORT BOOL WINAPI EvtNext(EVT_HANDLE handle, DWORD max, EVT_HANDLE *out, DWORD timeout,
			   DWORD flags, PDWORD n)
{
	struct subscription *s = handle;

	(void)timeout;
	(void)flags;
	for (*n = 0; *n < max && s->next < nlines && GetTickCount64() - s->start_ms >= 290;
	     s->next++)
		if (!_wcsicmp(lines[s->next].channel, s->channel))
			out[(*n)++] = &lines[s->next];
	SetLastError(ERROR_NO_MORE_ITEMS);
	return *n > 0;
}

EXPORT BOOL WINAPI EvtClose(EVT_HANDLE handle)
{
	(void)handle;
	return TRUE;
}

EXPORT EVT_HANDLE WINAPI EvtCreateRenderContext(DWORD n, LPCWSTR *paths, DWORD flags)
{
	(void)n;
	(void)paths;
	return (EVT_HANDLE)(uintptr_t)(flags + 1);
}

EXPORT BOOL WINAPI EvtRender(EVT_HANDLE context, EVT_HANDLE event, DWORD flags, DWORD bytes,
			     PVOID out, PDWORD used, PDWORD n)
{
	struct line *l = event;
	EVT_VARIANT *v = out;

	(void)flags;
	*n = (uintptr_t)context == EvtRenderContextSystem + 1 ? EvtSystemPropertyIdEND : 1;
	*used = *n * (DWORD)sizeof(*v);
	if (bytes < *used) {
		SetLastError(ERROR_INSUFFICIENT_BUFFER);
		return FALSE;
	}
	memset(v, 0, *used);
	if (*n == 1) {
		v[0].Type = EvtVarTypeString;
		v[0].StringVal = l->message + (l->message[0] == L'!');
		return TRUE;
	}
	v[EvtSystemProviderName].Type = EvtVarTypeString;
	v[EvtSystemProviderName].StringVal = l->provider;
	v[EvtSystemEventID].Type = EvtVarTypeUInt16;
	v[EvtSystemEventID].UInt16Val = (UINT16)l->id;
	v[EvtSystemLevel].Type = EvtVarTypeByte;
	v[EvtSystemLevel].ByteVal = (UINT8)l->level;
	v[EvtSystemKeywords].Type = EvtVarTypeHexInt64;
	v[EvtSystemKeywords].UInt64Val = l->keywords;
	v[EvtSystemProcessID].Type = EvtVarTypeUInt32;
	v[EvtSystemProcessID].UInt32Val = 4711;
	return TRUE;
}

EXPORT EVT_HANDLE WINAPI EvtOpenPublisherMetadata(EVT_HANDLE session, LPCWSTR name, LPCWSTR path,
						  LCID locale, DWORD flags)
{
	(void)session;
	(void)path;
	(void)locale;
	(void)flags;
	return (EVT_HANDLE)(uintptr_t)(wcsncmp(name, L"Gone", 4) != 0);
}

EXPORT BOOL WINAPI EvtFormatMessage(EVT_HANDLE metadata, EVT_HANDLE event, DWORD id, DWORD nvalues,
				    PEVT_VARIANT values, DWORD flags, DWORD chars, LPWSTR out,
				    PDWORD used)
{
	const struct line *l = event;

	(void)metadata;
	(void)id;
	(void)nvalues;
	(void)values;
	(void)flags;
	*used = (DWORD)wcslen(l->message) + 1;
	if (*used > chars) {
		SetLastError(ERROR_INSUFFICIENT_BUFFER);
		return FALSE;
	}
	wcscpy(out, l->message);
	return TRUE;
}

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved)
{
	(void)self;
	(void)reserved;
	if (reason == DLL_PROCESS_ATTACH)
		load();
	if (reason == DLL_PROCESS_ATTACH && getenv("STANDIN_ETW"))
		LoadLibraryW(L"tdh.dll");
	return TRUE;
}
