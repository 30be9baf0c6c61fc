import java.util.ArrayList;
import java.util.List;

/*
 * Exceptions of each kind, a known number of each: "COUNT TYPE: MESSAGE" is printed for what was
 * thrown. Some by new, some by the JVM, some it keeps ready, some of native code.
 *
 *	JavaThrow ROUNDS [MS [FILE]]     so many of each kind, and so long a pause after each round;
 *	                                 it begins when there is a file of that name
 */
public class JavaThrow {
	static class NoStock extends RuntimeException {
		NoStock(String item) {
			super(item, null);
		}
	}

	/* It notes no stack, so nobody sees it. */
	static class Quiet extends RuntimeException {
		Quiet() {
			super("quiet", null, false, false);
		}
	}

	static volatile Object sink;

	static void order(String item) {
		throw new NoStock(item);
	}

	static int depth(int n) {
		return depth(n + 1) + 1;
	}

	static void act(int kind) throws Throwable {
		switch (kind) {
		case 0:
			order("none left of " + "\u00e9\u20ac");
			break;
		case 1:
			sink = ((Object[]) sink)[7];
			break;
		case 2:
			sink = (Integer) (Object) "text";
			break;
		case 3:
			Class.forName("no.such.Class");
			break;
		case 4:
			sink = new long[Integer.MAX_VALUE];
			break;
		case 5:
			depth(0);
			break;
		case 6:
			new java.io.FileInputStream("/no/such/file");
			break;
		case 7:
			throw new IllegalStateException();
		default:
			throw new Quiet();
		}
	}

	public static void main(String[] arguments) throws Exception {
		int rounds = Integer.parseInt(arguments[0]);
		int ms = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 0;

		while (arguments.length > 2 && !new java.io.File(arguments[2]).exists())
			Thread.sleep(10);
		for (int round = 0; round < rounds; round++) {
			for (int kind = 0; kind <= 8; kind++) {
				sink = new Object[3];
				try {
					act(kind);
				} catch (Throwable e) {
					if (round == 0)
						System.out.println(rounds + " " + e.getClass().getName() +
								   ": " + e.getMessage());
				}
			}
			Thread.sleep(ms);
		}
		System.out.println("done");
	}
}
