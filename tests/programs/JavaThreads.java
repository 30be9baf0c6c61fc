import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.net.ServerSocket;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.DelayQueue;
import java.util.concurrent.Delayed;
import java.util.concurrent.Exchanger;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/* JavaThreads: threads that stand still, each in its own way, below 36 calls or more. */
public class JavaThreads {
	interface Work {
		void run() throws Exception;
	}

	static final long LONG_MS = 100_000_000;
	static final Object held = new Object();
	static final ReentrantLock lock = new ReentrantLock();

	static class Slow {
		static {
			sleep();
		}

		static void touch() {
		}
	}

	static void sleep() {
		try {
			Thread.sleep(LONG_MS);
		} catch (InterruptedException e) {
			throw new Error(e);
		}
	}

	static void down(int n, Work w) throws Exception {
		if (n == 0)
			w.run();
		else if ((n & 1) == 0)
			even(n - 1, w);
		else
			down(n - 1, w);
	}

	static void even(int n, Work w) throws Exception {
		down(n, w);
	}

	/*
	 * Compiled first, so that all kinds of frames stand on the stacks. One after another: all at once
	 * switch so often that records of switches are lost, and with one of them the stack of a wait.
	 */
	static void start(String name, Work w) throws InterruptedException {
		Thread t = new Thread(() -> {
			try {
				for (int i = 0; i < 30000; i++)
					down(20, () -> { });
				down(24, w);
			} catch (Exception e) {
				throw new Error(e);
			}
		}, name);

		t.setDaemon(true);
		t.start();
		Thread.sleep(100);
	}

	@SuppressWarnings({"deprecation", "removal"})
	static class Finalized {
		protected void finalize() {
		}
	}

	/*
	 * The JVM's own threads for references began to wait before anybody could know this JVM. Now
	 * they wait again.
	 */
	static void wakeReferenceThreads() throws InterruptedException {
		new Finalized();
		System.gc();
		Thread.sleep(100);
	}

	static void waits() throws InterruptedException {
		Object o = new Object();

		synchronized (o) {
			o.wait();
		}
	}

	static void reflects() throws Exception {
		Work sleeps = JavaThreads::sleep;

		JavaThreads.class.getDeclaredMethod("even", int.class, Work.class)
				.invoke(null, 3, sleeps);
	}

	static void sorts() {
		Integer[] numbers = {3, 1, 2, 5};

		Arrays.sort(numbers, (a, b) -> {
			sleep();
			return a - b;
		});
	}

	public static void main(String[] arguments) throws Exception {
		ServerSocket server = new ServerSocket(0);

		Thread.sleep(700);
		start("sleeps", () -> sleep());
		start("waits", () -> waits());
		start("parks", () -> LockSupport.park());
		start("queue", () -> new LinkedBlockingQueue<String>().take());
		start("latch", () -> new CountDownLatch(1).await());
		start("accepts", () -> server.accept());
		start("stream", () -> Arrays.asList(1, 2).stream().map(x -> x + 1).forEach(x -> sleep()));
		start("reflects", () -> reflects());
		start("sorts", () -> sorts());
		start("initializes", () -> Slow.touch());
		start("exchanger", () -> new Exchanger<String>().exchange("x"));
		start("future", () -> CompletableFuture.supplyAsync(() -> {
			LockSupport.park();
			return 1;
		}).get());
		start("delay", () -> new DelayQueue<Delayed>().take());
		start("pipe", () -> new PipedInputStream(new PipedOutputStream()).read());
		lock.lock();
		start("locks", () -> lock.lock());
		synchronized (held) {
			start("blocked", () -> {
				synchronized (held) {
					sleep();
				}
			});
			wakeReferenceThreads();
			System.out.println("ready");
			System.out.flush();
			sleep();
		}
	}
}
