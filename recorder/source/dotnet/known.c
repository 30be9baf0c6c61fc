#include "source/dotnet/known.h"

#include "base/array.h"
#include "base/nearest.h"
#include "base/text.h"

#include <ctype.h>
#include <string.h>

/* Source: the classes with [EventSource] of dotnet/runtime, dotnet/aspnetcore, these libraries. */
static const char *const known[] = {
	"Microsoft-Windows-DotNETRuntime", "Microsoft-Windows-DotNETRuntimeRundown",
	"Microsoft-Windows-DotNETRuntimePrivate", "Microsoft-Windows-DotNETRuntimeStress",
	"Microsoft-DotNETCore-SampleProfiler", "Microsoft-DotNETCore-EventPipe",
	"Microsoft-DotNETRuntimeMonoProfiler", "System.Runtime", "System.Diagnostics.Metrics",
	"System.Threading.Tasks.TplEventSource", "System.Threading.SynchronizationEventSource",
	"System.Threading.Tasks.Parallel.EventSource", "System.Linq.Parallel.PlinqEventSource",
	"System.Threading.Tasks.Dataflow.DataflowEventSource",
	"System.Buffers.ArrayPoolEventSource",
	"System.Collections.Concurrent.ConcurrentCollectionsEventSource",
	"System.Data.DataCommonEventSource", "System.Net.Http", "System.Net.NameResolution",
	"System.Net.Security", "System.Net.Sockets", "Microsoft-System-Net-Http",
	"Microsoft-System-Net-NameResolution", "Microsoft-System-Net-Security",
	"Microsoft-System-Net-Sockets", "Microsoft-System-Net-Primitives",
	"Private.InternalDiagnostics.System.Net.Http",
	"Private.InternalDiagnostics.System.Net.HttpListener",
	"Private.InternalDiagnostics.System.Net.NameResolution",
	"Private.InternalDiagnostics.System.Net.Primitives",
	"Private.InternalDiagnostics.System.Net.Quic",
	"Private.InternalDiagnostics.System.Net.Requests",
	"Private.InternalDiagnostics.System.Net.Security",
	"Private.InternalDiagnostics.System.Net.Sockets",
	"Private.InternalDiagnostics.System.Net.WebSockets",
	"Microsoft-Diagnostics-DiagnosticSource", "Microsoft-Extensions-Logging",
	"Microsoft-Extensions-DependencyInjection", "Microsoft-AspNetCore-Server-Kestrel",
	"Microsoft.AspNetCore.Hosting", "Microsoft.AspNetCore.Http.Connections",
	"Microsoft.EntityFrameworkCore", "Microsoft.Data.SqlClient.EventSource",
	"Microsoft.AspNetCore.Watch", "Grpc.AspNetCore.Server", "Grpc.Net.Client", "Npgsql",
};

const char *dotnet_known(const char *name)
{
	size_t i;

	for (i = 0; i < COUNT_OF(known); i++)
		if (text_same_fold(known[i], name))
			return known[i];
	return NULL;
}

void dotnet_known_near(const char *name, struct buf *out)
{
	struct nearest nearest = {.wanted = name};
	size_t i;

	for (i = 0; i < COUNT_OF(known); i++)
		nearest_offer(&nearest, known[i]);
	nearest_put(&nearest, "", "", out);
}

/* Source: RuntimeEventSource.cs and its like in dotnet/runtime and dotnet/aspnetcore, to .NET 9. */
static const struct {
	const char *provider;
	const char *counters[32];
} counters[] = {
	{"System.Runtime",
	 {"cpu-usage", "working-set", "gc-heap-size", "gen-0-gc-count", "gen-1-gc-count",
	  "gen-2-gc-count", "threadpool-thread-count", "monitor-lock-contention-count",
	  "threadpool-queue-length", "threadpool-completed-items-count", "alloc-rate",
	  "active-timer-count", "gc-fragmentation", "gc-committed", "exception-count",
	  "time-in-gc", "gen-0-size", "gen-1-size", "gen-2-size", "loh-size", "poh-size",
	  "total-pause-time-by-gc", "gen-0-gc-budget", "assembly-count", "il-bytes-jitted",
	  "methods-jitted-count", "time-in-jit"}},
	{"Microsoft.AspNetCore.Hosting",
	 {"requests-per-second", "total-requests", "current-requests", "failed-requests"}},
	{"Microsoft-AspNetCore-Server-Kestrel",
	 {"connections-per-second", "total-connections", "tls-handshakes-per-second",
	  "total-tls-handshakes", "current-tls-handshakes", "failed-tls-handshakes",
	  "current-connections", "connection-queue-length", "request-queue-length",
	  "current-upgraded-requests"}},
	{"System.Net.Http",
	 {"requests-started", "requests-started-rate", "requests-failed", "requests-failed-rate",
	  "current-requests", "http11-connections-current-total",
	  "http20-connections-current-total", "http30-connections-current-total",
	  "http11-requests-queue-duration", "http20-requests-queue-duration",
	  "http30-requests-queue-duration"}},
};

bool dotnet_known_counter(const char *provider, const char *counter, struct buf *near)
{
	struct nearest nearest = {.wanted = counter};
	const char *const *name;
	size_t i;

	for (i = 0; i < COUNT_OF(counters); i++) {
		if (!text_same_fold(counters[i].provider, provider))
			continue;
		for (name = counters[i].counters; *name; name++) {
			if (text_same_fold(*name, counter))
				return true;
			nearest_offer(&nearest, *name);
		}
	}
	nearest_put(&nearest, "'", "'", near);
	return false;
}

const char *dotnet_instead(const char *name)
{
	static const struct {
		const char *name, *instead;
	} windows[] = {
		{"Windows Kernel", "the tracepoints of sched, block, syscalls and others"},
		{"Windows Kernel Trace", "the tracepoints of sched, block, syscalls and others"},
		{"Microsoft-Windows-Kernel-Process",
		 "--stop-on-process NAME;On=start, or sched/sched_process_exec"},
		{"Microsoft-Windows-Kernel-File", "syscalls/sys_enter_openat and its like"},
		{"Microsoft-Windows-Kernel-Disk", "block/block_rq_complete"},
		{"Microsoft-Windows-StorPort", "block/block_rq_complete"},
		{"Microsoft-Windows-Kernel-Network", "sock/inet_sock_set_state and its like"},
		{"Microsoft-Windows-TCPIP", "tcp/tcp_retransmit_skb and its like"},
		{"Microsoft-Windows-Winsock-AFD", "sock/inet_sock_set_state and its like"},
		{"Microsoft-Windows-Kernel-Memory", "exceptions/page_fault_user and its like"},
		{"Microsoft-Windows-Kernel-Processor-Power", "power/cpu_idle and its like"},
		{"Microsoft-Windows-DNS-Client", "a probe: uprobe:/path/of/libc.so.6:getaddrinfo"},
		{"Microsoft-Windows-HttpService", "--stop-on-request-over-msec"},
		/* AppFabric's, of --stop-on-app-fabric-over-msec */
		{"{A77DCF21-545F-4191-B3D0-C396CF2683F2}", "--stop-on-request-over-msec"},
	};
	size_t i;

	for (i = 0; i < COUNT_OF(windows); i++)
		if (text_same_fold(windows[i].name, name))
			return windows[i].instead;
	return strncmp(name, "Microsoft-Windows-", 18) ? NULL : "what 'recorder events' lists";
}

/* ---- in files -------------------------------------------------------------------------------- */

static bool is_name_byte(unsigned char c)
{
	return isalnum(c) || c == '_' || c == '-' || c == '.';
}

static bool has_utf8(const unsigned char *bytes, size_t n, const char *name, size_t length)
{
	const unsigned char *at = bytes, *end = bytes + n;

	for (; (size_t)(end - at) >= length && (at = memchr(at, name[0], (size_t)(end - at)));
	     at++) {
		if ((size_t)(end - at) < length)
			return false;
		if (memcmp(at, name, length) != 0 || at == bytes)
			continue;
		if (at[-1] == length ||
		    (!is_name_byte(at[-1]) && (at + length == end || !is_name_byte(at[length]))))
			return true;
	}
	return false;
}

static bool is_name_utf16(const unsigned char *at)
{
	return is_name_byte(at[0]) && !at[1];
}

static bool is_utf16_at(const unsigned char *at, const char *name, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (at[2 * i] != (unsigned char)name[i] || at[2 * i + 1])
			return false;
	return true;
}

/* The whole of a string: before one stands its length, behind it a byte of flags. */
static bool has_utf16(const unsigned char *bytes, size_t n, const char *name, size_t length)
{
	const unsigned char *at = bytes, *end = bytes + n, *behind;

	for (; (size_t)(end - at) >= 2 * length &&
	       (at = memchr(at, name[0], (size_t)(end - at))) != NULL;
	     at++) {
		if ((size_t)(end - at) < 2 * length)
			return false;
		behind = at + 2 * length;
		if (is_utf16_at(at, name, length) && !(at - bytes >= 2 && is_name_utf16(at - 2)) &&
		    !(end - behind >= 2 && is_name_utf16(behind)))
			return true;
	}
	return false;
}

bool dotnet_bytes_name(const void *bytes, size_t n, const char *name)
{
	size_t length = strlen(name);

	return length && (has_utf8(bytes, n, name, length) || has_utf16(bytes, n, name, length));
}
