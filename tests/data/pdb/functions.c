/* Made into functions.exe, functions.pdb and symtab.exe by make.sh beside it. */
__attribute__((noinline)) int alpha(int x)
{
	return x * 3 + 1;
}

/* Private: no public symbol, and alpha's must not reach over it. */
__attribute__((noinline)) static int hidden(int x)
{
	volatile int room[20];

	room[x & 7] = alpha(x);
	return room[3];
}

__attribute__((noinline, dllexport)) int beta(int x)
{
	return hidden(x) * 7 + hidden(x + 1);
}

int start(void)
{
	return beta(5);
}

__attribute__((dllexport)) int data = 5;
