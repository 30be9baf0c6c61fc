/*
 * The end of the user's session, for a program with a console.
 *
 * Windows tells console programs about it through their control handler only until they load
 * user32.dll, and pdh.dll and others load it. So a hidden window is asked like those of any other
 * program: WM_QUERYENDSESSION, then WM_ENDSESSION, during which the last incident is stored.
 * A program whose console has no window (a service, a scheduled task) is not part of a session that
 * a user ends. Source: docs, SetConsoleCtrlHandler() "Remarks", "Shutdown Changes for Windows
 * Vista".
 */
#include "base/os.h"
#include "base/os_windows.h"

static struct {
	struct os_thread *thread;
	DWORD id;
	HANDLE ready;
} watch;

static LRESULT CALLBACK on_message(HWND window, UINT message, WPARAM w, LPARAM l)
{
	switch (message) {
	case WM_QUERYENDSESSION:
		ShutdownBlockReasonCreate(window, L"The last incident is being stored.");
		return TRUE;
	case WM_ENDSESSION:
		if (w)
			os_signal_session_ends();
		ShutdownBlockReasonDestroy(window);
		return 0;
	default:
		return DefWindowProcW(window, message, w, l);
	}
}

static void watch_main(void *ctx)
{
	WNDCLASSW class = {.lpfnWndProc = on_message, .hInstance = GetModuleHandleW(NULL),
			   .lpszClassName = L"recorder-session"};
	HWND window = NULL;
	MSG message;

	(void)ctx;
	watch.id = GetCurrentThreadId();
	PeekMessageW(&message, NULL, 0, 0, PM_NOREMOVE);    /* creates the thread's message queue */
	SetEvent(watch.ready);
	if (RegisterClassW(&class))
		window = CreateWindowExW(0, class.lpszClassName, L"recorder", 0, 0, 0, 0, 0, NULL,
					 NULL, class.hInstance, NULL);
	while (window && GetMessageW(&message, NULL, 0, 0) > 0)
		DispatchMessageW(&message);
	if (window)
		DestroyWindow(window);
	UnregisterClassW(class.lpszClassName, class.hInstance);
}

void os_logoff_watch(void)
{
	if (!GetConsoleWindow())
		return;
	watch.ready = CreateEventW(NULL, TRUE, FALSE, NULL);
	if (watch.ready && !os_thread_start("logoff", watch_main, NULL, &watch.thread, NULL))
		WaitForSingleObject(watch.ready, INFINITE);
}

void os_logoff_unwatch(void)
{
	if (watch.thread)
		PostThreadMessageW(watch.id, WM_QUIT, 0, 0);
	os_thread_join(watch.thread);
	watch.thread = NULL;
	if (watch.ready)
		CloseHandle(watch.ready);
	watch.ready = NULL;
}
