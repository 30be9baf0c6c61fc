import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.Method;
import java.math.BigInteger;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Random;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/* JavaWork SECONDS: many kinds of calls on two threads; prints the CPU time of each kind in ms. */
public class JavaWork {
	interface Shape {
		double area(double x);
	}

	static final Shape[] shapes = {
		x -> x * x, x -> x * 3.14, x -> Math.sin(x), x -> x + 1, x -> x / 2};
	static final byte[] plain = new byte[4000], packed = new byte[6000];
	static final BigInteger three = BigInteger.valueOf(3);
	static final BigInteger prime = BigInteger.ONE.shiftLeft(255).subtract(BigInteger.valueOf(19));
	static final Pattern pattern = Pattern.compile("(a+b)*c|x[yz]+");
	static final Method called;
	static volatile double sink;

	static {
		try {
			called = JavaWork.class.getDeclaredMethod("called", int.class);
		} catch (ReflectiveOperationException e) {
			throw new Error(e);
		}
		new Random(1).nextBytes(plain);
	}

	static long spin(long n) {
		long s = 0;

		for (long i = 0; i < n; i++)
			s += i * 31 ^ (s >>> 3);
		return s;
	}

	static long down(int depth) {
		return depth == 0 ? spin(3000) : down(depth - 1) + 1;
	}

	static void recursion() {
		sink += down(60);
	}

	static void megamorphic() {
		double d = 0;

		for (int i = 0; i < 5000; i++)
			d += shapes[i % shapes.length].area(i);
		sink += d;
	}

	static void streams() {
		sink += IntStream.range(0, 500).boxed().filter(x -> x % 3 == 0).map(x -> x * 2)
				.collect(Collectors.toList()).size();
	}

	static void sorts() {
		Integer[] a = new Integer[400];

		for (int i = 0; i < a.length; i++)
			a[i] = i * 7919 % 401;
		Arrays.sort(a, (p, q) -> q - p);
		sink += a[0];
	}

	static long thrower(int depth) {
		if (depth == 0)
			throw new IllegalStateException("deep");
		return thrower(depth - 1) + 1;
	}

	static void exceptions() {
		for (int i = 0; i < 5; i++) {
			try {
				sink += thrower(15);
			} catch (IllegalStateException e) {
				sink++;
			}
		}
	}

	static void zip() {
		Deflater d = new Deflater();
		CRC32 sum = new CRC32();

		d.setInput(plain);
		d.finish();
		sink += d.deflate(packed);
		d.end();
		sum.update(plain);
		sink += sum.getValue();
	}

	static void big() {
		sink += three.modPow(prime, prime).bitLength();
	}

	static void regex() {
		Matcher m = pattern.matcher("aabaabaabxyzzyaabcaabaab");

		while (m.find())
			sink++;
	}

	static void trig() {
		double d = 0;

		for (int i = 0; i < 300; i++)
			d += Math.sin(i) + Math.tan(i) + Math.pow(i, 0.3) + Math.log(i + 1);
		sink += d;
	}

	static void copies() {
		byte[] b = new byte[20000];

		for (int i = 0; i < 20; i++)
			System.arraycopy(plain, 0, b, i * 800, 800 + i);
		sink += b[5];
	}

	static int called(int x) {
		return x + 1;
	}

	static void reflection() {
		try {
			for (int i = 0; i < 200; i++)
				sink += (int) called.invoke(null, i);
		} catch (ReflectiveOperationException e) {
			throw new Error(e);
		}
	}

	static void maps() {
		HashMap<String, Integer> m = new HashMap<>();

		for (int i = 0; i < 200; i++)
			m.merge("key" + i % 20, 1, Integer::sum);
		sink += m.size();
	}

	static synchronized void locked() {
		sink++;
	}

	static void locks() {
		for (int i = 0; i < 500; i++)
			locked();
	}

	static void strings() {
		StringBuilder b = new StringBuilder();

		for (int i = 0; i < 100; i++)
			b.append(i).append(String.format("%d", i));
		sink += b.toString().hashCode();
	}

	static final String[] names = {
		"recursion", "megamorphic", "streams", "sorts", "exceptions", "zip", "big", "regex",
		"trig", "copies", "reflection", "maps", "locks", "strings"};
	static final Runnable[] work = {
		JavaWork::recursion, JavaWork::megamorphic, JavaWork::streams, JavaWork::sorts,
		JavaWork::exceptions, JavaWork::zip, JavaWork::big, JavaWork::regex, JavaWork::trig,
		JavaWork::copies, JavaWork::reflection, JavaWork::maps, JavaWork::locks,
		JavaWork::strings};

	/* Each kind for 4 ms at a time. */
	static void loop(long end, long[] spent) {
		ThreadMXBean cpu = ManagementFactory.getThreadMXBean();

		for (int i = 0; System.nanoTime() < end; i = (i + 1) % work.length) {
			long from = cpu.getCurrentThreadCpuTime(), until = System.nanoTime() + 4_000_000;

			do
				work[i].run();
			while (System.nanoTime() < until);
			spent[i] += cpu.getCurrentThreadCpuTime() - from;
		}
	}

	public static void main(String[] arguments) throws Exception {
		long end = System.nanoTime() + (long) (Double.parseDouble(arguments[0]) * 1e9);
		long[][] spent = new long[2][work.length];
		Thread other = new Thread(() -> loop(end, spent[1]), "other");

		other.start();
		loop(end, spent[0]);
		other.join();
		for (int i = 0; i < work.length; i++)
			System.out.println(names[i] + " " + (spent[0][i] + spent[1][i]) / 1000000);
	}
}
