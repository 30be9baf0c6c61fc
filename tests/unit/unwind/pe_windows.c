/*
 * The unwinder on real code: every address of every prologue of real images against the system's
 * own RtlVirtualUnwind(), and every instruction of calls into the system's libraries, stepped one
 * by one.
 */
#include "unwind/pe_pdata.h"

#include "base/array.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

enum { STACK_WORDS = 8192, MIDDLE = 1024, NSECTIONS = 64 };

static uint64_t stack_words[STACK_WORDS];

struct counts {
	uint64_t alike, other;
	uint64_t beyond;                     /* a frame larger than the made-up stack */
};

struct image {
	uint64_t base;
	struct pe_range ranges[NSECTIONS];
	struct pe_tables tables;
};

static void open_image(struct image *image, const char *name)
{
	const uint8_t *base = (const uint8_t *)GetModuleHandleA(name);
	const IMAGE_NT_HEADERS64 *nt =
		(const IMAGE_NT_HEADERS64 *)(base + ((const IMAGE_DOS_HEADER *)base)->e_lfanew);
	const IMAGE_SECTION_HEADER *s = IMAGE_FIRST_SECTION(nt);
	const IMAGE_DATA_DIRECTORY *pdata =
		&nt->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_EXCEPTION];

	image->base = (uint64_t)base;
	image->tables = (struct pe_tables){image->ranges, 0, pdata->VirtualAddress, pdata->Size};
	for (unsigned i = 0; i < nt->FileHeader.NumberOfSections && i < NSECTIONS; i++)
		image->ranges[image->tables.nranges++] = (struct pe_range){
			s[i].VirtualAddress, s[i].Misc.VirtualSize, base + s[i].VirtualAddress};
}

static void fill(CONTEXT *c, struct pe_registers *regs, uint64_t rip, uint32_t seed)
{
	DWORD64 *r = &c->Rax;

	memset(c, 0, sizeof(*c));
	c->ContextFlags = CONTEXT_FULL;
	for (unsigned i = 0; i < PE_REGISTERS; i++)
		r[i] = (DWORD64)(stack_words + MIDDLE + (seed * 7 + i * 5) % 64);
	c->Rsp = (DWORD64)(stack_words + MIDDLE);
	c->Rip = rip;
	memcpy(regs->r, r, sizeof(regs->r));
	regs->rip = rip;
	regs->interrupted = true;
}

/*
 * Whether both go to the same caller with the same registers; RSP may lie beyond the made-up stack.
 */
static bool same(const CONTEXT *c, const struct pe_registers *regs)
{
	static const uint8_t kept[] = {3, PE_RSP, PE_RBP, 6, 7, 12, 13, 14, 15};
	const DWORD64 *r = &c->Rax;

	for (unsigned i = 0; i < sizeof(kept); i++)
		if (r[kept[i]] != regs->r[kept[i]])
			return false;
	return c->Rip == regs->rip;
}

static void compare_at(const struct image *image, RUNTIME_FUNCTION *f, uint32_t rva,
		       struct counts *counts)
{
	struct stack_view view = {.bytes = (const uint8_t *)stack_words,
				  .start = (uint64_t)stack_words,
				  .nbytes = sizeof(stack_words)};
	struct pe_registers regs;
	enum pe_step step;
	CONTEXT context;
	DWORD64 frame;
	void *data;

	fill(&context, &regs, image->base + rva, rva);
	step = pe_step(&image->tables, rva, &regs, &view);
	if (step == PE_STEP_UNREADABLE) {
		counts->beyond++;
		return;
	}
	RtlVirtualUnwind(UNW_FLAG_NHANDLER, image->base, context.Rip, f, &context, &data, &frame,
			 NULL);
	if (step == PE_STEP_ON && same(&context, &regs))
		counts->alike++;
	else
		counts->other++;
}

static void compare_image(const char *name)
{
	struct counts counts = {0};
	struct image image;
	RUNTIME_FUNCTION *f;

	for (unsigned i = 0; i < STACK_WORDS; i++)
		stack_words[i] = (uint64_t)(stack_words + MIDDLE + i % 512);
	open_image(&image, name);
	f = (RUNTIME_FUNCTION *)(image.base + image.tables.pdata_rva);
	for (uint32_t i = 0; i < image.tables.pdata_bytes / sizeof(*f); i++) {
		const uint8_t *info = (const uint8_t *)(image.base + f[i].UnwindData);

		for (uint32_t at = 0; at < info[1]; at++)
			compare_at(&image, &f[i], f[i].BeginAddress + at, &counts);
	}
	print_message("%s: %" PRIu64 " addresses alike, %" PRIu64 " with frames beyond the stack\n",
		      name ? name : "this program", counts.alike, counts.beyond);
	assert_true(counts.alike > 1000);
	assert_int_equal(counts.other, 0);
}

TEST(every_prologue_of_this_program_goes_to_the_systems_caller)
{
	compare_image(NULL);
}

TEST(every_prologue_of_the_systems_libraries_too)
{
	compare_image("ntdll.dll");
	compare_image("kernel32.dll");
	compare_image("msvcrt.dll");
}

/* ---- every instruction of a call, stepped ---------------------------------------------------- */

enum {
	STEPS_MAX = 60000,
	FRAMES_MAX = 64,
	IMAGES_MAX = 8,
	TRAP_FLAG = 0x100,
	STACK_BYTES = 1 << 20
};

static struct {
	struct image images[IMAGES_MAX];
	uint32_t nimages;
	uint64_t caller_rip, caller_rsp;     /* of the frame that every walk must pass */
	uint64_t stack_end;
	uint32_t steps, lost;
	uint64_t first_lost;
	bool stepping;
} steps;

static const struct pe_tables *find_image(void *ctx, uint64_t address, uint32_t *rva)
{
	(void)ctx;
	for (uint32_t i = 0; i < steps.nimages; i++) {
		const struct image *image = &steps.images[i];

		for (uint32_t k = 0; k < image->tables.nranges; k++) {
			if (address - image->base - image->ranges[k].rva <
			    image->ranges[k].nbytes) {
				*rva = (uint32_t)(address - image->base);
				return &image->tables;
			}
		}
	}
	return NULL;
}

/* Walk until the caller's frame has been reached with its very RSP. */
static bool reaches_the_caller(const CONTEXT *c)
{
	struct stack_view view = {.bytes = (const uint8_t *)c->Rsp, .start = c->Rsp,
				  .nbytes = (uint32_t)(steps.stack_end - c->Rsp)};
	struct pe_registers regs = {.rip = c->Rip, .interrupted = true};
	const struct pe_tables *tables;
	uint32_t rva;

	memcpy(regs.r, &c->Rax, sizeof(regs.r));
	for (unsigned i = 0; i < FRAMES_MAX; i++) {
		if (regs.rip == steps.caller_rip && regs.r[PE_RSP] == steps.caller_rsp)
			return true;
		tables = find_image(NULL, regs.rip - !regs.interrupted, &rva);
		if (!tables || pe_step(tables, rva, &regs, &view) != PE_STEP_ON)
			return false;
	}
	return false;
}

/* The C library of MinGW has this one without an entry, though it pushes: nobody can unwind it. */
void ___chkstk_ms(void);

static bool is_undescribed(uint64_t rip)
{
	return rip - (uint64_t)___chkstk_ms < 64;
}

static LONG CALLBACK on_step(EXCEPTION_POINTERS *e)
{
	CONTEXT *c = e->ContextRecord;

	if (e->ExceptionRecord->ExceptionCode != EXCEPTION_SINGLE_STEP)
		return EXCEPTION_CONTINUE_SEARCH;
	/* Back in the caller: the call is over. */
	if (c->Rsp >= steps.caller_rsp || ++steps.steps >= STEPS_MAX)
		steps.stepping = false;
	else if (!is_undescribed(c->Rip) && !reaches_the_caller(c) && !steps.lost++)
		steps.first_lost = c->Rip;
	if (steps.stepping)
		c->EFlags |= TRAP_FLAG;
	else
		c->EFlags &= ~(DWORD)TRAP_FLAG;
	return EXCEPTION_CONTINUE_EXECUTION;
}

static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void work(char *text, size_t n)
{
	int numbers[] = {5, 3, 9, 1, 7, 2, 8};
	void *block = HeapAlloc(GetProcessHeap(), 0, 1000);

	qsort(numbers, 7, sizeof(numbers[0]), compare_ints);
	snprintf(text, n, "%d %s %.3f", numbers[0], "text", 1.5);
	HeapFree(GetProcessHeap(), 0, block);
}

/* Set the trap flag and call work(); the return address of that call is what walks must find. */
__attribute__((noinline)) static void step_through(char *text, size_t n)
{
	__asm__ volatile("lea 1f(%%rip), %%rax\n\t"
			 "mov %%rax, %[rip]\n\t"
			 "mov %%rsp, %[rsp]\n\t"
			 "pushfq\n\t"
			 "orq $0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 "call *%[work]\n"
			 "1:\n\t"
			 "pushfq\n\t"
			 "andq $~0x100, (%%rsp)\n\t"
			 "popfq"
			 : [rip] "=m"(steps.caller_rip), [rsp] "=m"(steps.caller_rsp), "+c"(text),
			   "+d"(n)
			 : [work] "r"(work)
			 : "rax", "r8", "r9", "r10", "r11", "memory", "cc");
}

TEST(every_instruction_of_a_call_leads_back_to_its_caller)
{
	static const char *const names[] = {NULL, "ntdll.dll", "kernel32.dll", "kernelbase.dll",
					    "msvcrt.dll"};
	void *handler = AddVectoredExceptionHandler(1, on_step);
	MEMORY_BASIC_INFORMATION stack;
	char text[64];

	memset(&steps, 0, sizeof(steps));
	for (size_t i = 0; i < COUNT_OF(names); i++)
		open_image(&steps.images[steps.nimages++], names[i]);
	VirtualQuery(&stack, &stack, sizeof(stack));
	steps.stack_end = (uint64_t)stack.BaseAddress + stack.RegionSize;
	steps.stepping = true;
	step_through(text, sizeof(text));
	RemoveVectoredExceptionHandler(handler);
	print_message("%u instructions, %u without their caller, the first at %#" PRIx64 "\n",
		      steps.steps, steps.lost, steps.first_lost);
	assert_string_equal(text, "1 text 1.500");
	assert_true(steps.steps > 1000);
	assert_int_equal(steps.lost, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_prologue_of_this_program_goes_to_the_systems_caller),
		cmocka_unit_test(every_prologue_of_the_systems_libraries_too),
		cmocka_unit_test(every_instruction_of_a_call_leads_back_to_its_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
