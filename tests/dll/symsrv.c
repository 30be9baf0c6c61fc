/* A stand-in for symsrv.dll, of which only being there counts: tests/dll/dbghelp.c. */
#include <windows.h>

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved)
{
	(void)self, (void)reason, (void)reserved;
	return TRUE;
}
