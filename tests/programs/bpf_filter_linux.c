/*
 * bpf_filter NAME SECONDS: load a BPF program by that name and keep it busy.
 *
 * A socket filter of some thousand multiplications is attached to a datagram socket of the
 * loopback, which this process sends to; the kernel runs the filter on the sender's CPU time.
 * Prints "ready" when it runs. Exit 77: not allowed here, or BPF is not compiled to machine code
 * (nothing to sample).
 */
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_ATTACH_BPF
#define SO_ATTACH_BPF 50
#endif

enum { INSNS = 3000, NOT_HERE = 77 };

static int not_here(const char *why)
{
	fprintf(stderr, "bpf_filter: ");
	perror(why);
	return NOT_HERE;
}

static int load(const char *name)
{
	static struct bpf_insn program[INSNS + 3];
	union bpf_attr attr;
	size_t n = 0;

	program[n++] =
		(struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 3};
	while (n <= INSNS)
		program[n++] = (struct bpf_insn){.code = BPF_ALU64 | BPF_DIV | BPF_K, .dst_reg = 0,
						 .imm = 7};
	program[n++] =
		(struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0};
	program[n++] = (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insns = (uint64_t)(uintptr_t)program;
	attr.insn_cnt = (uint32_t)n;
	attr.license = (uint64_t)(uintptr_t)"GPL";
	snprintf(attr.prog_name, sizeof(attr.prog_name), "%s", name);
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int jit_is_on(void)
{
	FILE *f = fopen("/proc/sys/net/core/bpf_jit_enable", "r");
	int c = f ? fgetc(f) : EOF;

	if (f)
		fclose(f);
	return c == EOF || c != '0';                 /* no such file: it cannot be switched off */
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	int program, receiver = socket(AF_INET, SOCK_DGRAM, 0),
		     sender = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t n = sizeof(address);
	time_t end;

	if (argc != 3)
		return 2;
	if (!jit_is_on())
		return fprintf(stderr, "bpf_filter: net.core.bpf_jit_enable is 0\n"), NOT_HERE;
	program = load(argv[1]);
	if (program < 0)
		return not_here("cannot load a BPF program");
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(receiver, (struct sockaddr *)&address, n) ||
	    getsockname(receiver, (struct sockaddr *)&address, &n) ||
	    setsockopt(receiver, SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof(program)))
		return not_here("cannot attach it to a socket");
	puts("ready");
	fflush(stdout);
	for (end = time(NULL) + atoi(argv[2]); time(NULL) < end;)
		sendto(sender, "x", 1, 0, (struct sockaddr *)&address, n);
	return 0;
}
