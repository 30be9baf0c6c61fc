/*
 * Disk and file I/O as samples, from the events that tell of it: bytes, and how long it took.
 *
 *	                   begins at                             ends at
 *	io-bytes, io-time  DiskIO/ReadInit, /WriteInit           DiskIO/Read, /Write
 *	                   block/block_rq_issue                  block/block_rq_complete
 *	file-bytes, -time  FileIO/Read, /Write                   FileIO/OperationEnd
 *	                   syscalls/sys_enter_read, _write       syscalls/sys_exit_read, _write
 *
 * A sample has the thread and stack of who began it, and below that what was done and, of disks,
 * the file's name (Windows) or the device's number (Linux). Its time is that of the end. What began
 * before the window has bytes on Windows only, where the end tells them, and no stack.
 */
#pragma once

#include "model/incident.h"

/*
 * Add the samples, not in order of time; call it once.
 *
 * module   leaf_module()
 * returns  0 or ERR_MEMORY
 */
int io_samples_add(struct incident *in, uint32_t module);
