import java.io.DataInputStream;
import java.io.InputStream;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/*
 * Classes that come and go: each thread defines a class of its own again and again, with another
 * name of class and method each time, runs it for some ms, and drops it, so that it is unloaded and
 * its code and metadata are used for others. Prints "TID NUMBER FROM_US TO_US" for each run, by the
 * wall clock: a sample between them shows Gen<NUMBER>.work<NUMBER> or none. As an agent (-javaagent)
 * it keeps some classes instead and redefines one before each run.
 */
public class JavaUnload {
	/* Its bytes are the model: 000000 becomes the number. */
	public static class Gen000000 {
		public static long work000000(long until) {
			long x = 1;

			while (System.nanoTime() < until)
				for (int i = 0; i < 1000; i++)
					x = step000000(x, i);
			return x;
		}

		static long step000000(long x, int i) {
			return x * 6364136223846793005L + (i ^ x >>> 33);
		}
	}

	static class Loader extends ClassLoader {
		Class<?> define(byte[] bytes) {
			return defineClass(null, bytes, 0, bytes.length);
		}
	}

	static byte[] model;

	static byte[] named(int number) {
		byte[] from = "000000".getBytes(StandardCharsets.US_ASCII);
		byte[] to = String.format("%06d", number).getBytes(StandardCharsets.US_ASCII);
		byte[] bytes = model.clone();

		for (int i = 0; i + 6 <= bytes.length; i++)
			if (Arrays.equals(Arrays.copyOfRange(bytes, i, i + 6), from))
				System.arraycopy(to, 0, bytes, i, 6);
		return bytes;
	}

	static long wall_us() {
		java.time.Instant now = java.time.Instant.now();

		return now.getEpochSecond() * 1_000_000L + now.getNano() / 1000;
	}

	static long tid() throws Exception {
		java.io.File self = new java.io.File("/proc/thread-self");

		return Long.parseLong(self.getCanonicalFile().getName());
	}

	static final int KEPT = 20;
	static Instrumentation redefining;

	public static void premain(String options, Instrumentation given) {
		redefining = given;
	}

	static void runs(int first, long end) throws Exception {
		Class<?>[] kept = new Class<?>[KEPT];
		long tid = tid();

		for (int i = 0; System.nanoTime() < end; i++) {
			int number = first + (redefining == null ? i : i % KEPT);
			Class<?> c = kept[i % KEPT];

			if (c == null)
				c = new Loader().define(named(number));
			else
				redefining.redefineClasses(new ClassDefinition(c, named(number)));
			if (redefining != null)
				kept[i % KEPT] = c;
			String name = "work" + String.format("%06d", number);
			java.lang.reflect.Method m = c.getMethod(name, long.class);
			long from = wall_us();

			m.invoke(null, System.nanoTime() + 15_000_000L);
			synchronized (System.out) {
				System.out.println(tid + " " + number + " " + from + " " + wall_us());
			}
		}
	}

	public static void main(String[] arguments) throws Exception {
		long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
		Thread[] threads = new Thread[2];

		String file = "JavaUnload$Gen000000.class";

		try (InputStream in = JavaUnload.class.getResourceAsStream(file)) {
			model = new byte[in.available()];
			new DataInputStream(in).readFully(model);
		}
		for (int i = 0; i < threads.length; i++) {
			int first = 100_000 * (i + 1);

			threads[i] = new Thread(() -> {
				try {
					runs(first, end);
				} catch (Exception e) {
					throw new RuntimeException(e);
				}
			});
			threads[i].start();
		}
		while (System.nanoTime() < end) {
			Thread.sleep(200);
			System.gc();
		}
		for (Thread t : threads)
			t.join();
		System.out.flush();
	}
}
