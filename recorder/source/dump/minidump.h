/*
 * Minidumps of x64 and x86 Windows: those of dbghelp's MiniDumpWriteDump, Windows Error Reporting,
 * procdump, crashpad, and Wine. Portable; hostile bytes.
 *
 * A 64-bit program that dumps a 32-bit one (WOW64) writes the registers of 64-bit code. Those of
 * the 32-bit code are then taken from where wow64.dll keeps them, if that memory was dumped.
 *
 * Source: minidumpapiset.h of the Windows SDK ("MINIDUMP_HEADER" and the streams); winnt.h
 * (CONTEXT, WOW64_CONTEXT, TEB).
 */
#pragma once

#include "source/dump/dump.h"

/* Does it begin like one? */
bool minidump_is(const struct bytes *in);

/*
 * in       borrowed by *out, except its bytes
 * returns  0; ERR_FORMAT: no minidump, or damaged beyond use; ERR_UNSUPPORTED: of another machine
 *          or system; ERR_LIMIT, ERR_MEMORY, ERR_IO. One that is cut off is read as far as it goes
 */
int minidump_read(const struct bytes *in, struct dump **out, struct err *err);
