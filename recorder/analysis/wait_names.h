/*
 * What the waits of threads were for, by events: the names of files and ports as frames below
 * DISK_TIME, HARD_FAULT and NETWORK_TIME.
 *
 *	Windows   Memory/HardFault: HARD_FAULT and the file
 *	          DiskIO/Read, /Write of the thread: DISK_TIME and the file
 *	          TcpIp/Recv of the process, where the stack waits in a module of sockets:
 *	          NETWORK_TIME and the port
 *	Linux     filemap/mm_filemap_add_to_page_cache with File/Name: the file, or "inode 12 of
 *	          device 254:0" where the process had it no longer open
 *	          sock/sock_recv_length, _send_length with sock/inet_sock_set_state: the port
 *
 * A sample may be the sum of consecutive waits with one stack (source/thread_time.h). If these were
 * for different things, the frame says how many.
 */
#pragma once

#include "model/incident.h"

/* Call it once, before samples are chosen. 0 or ERR_MEMORY */
int wait_names_add(struct incident *in);
