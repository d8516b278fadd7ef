// A program with a signal handler of its own beside the profiler's. Arguments: `native` or
// `managed`, the signal, and how often the handler has to be called until the program ends (with 7).
// Prints how often it was called and, if native, how often inside of the profiler's module.
//
// A native handler may come at any time. Managed code may not (Mono by itself crashes where it
// interrupts Mono): its signal is blocked but for the time that the thread waits for it.
using System;
using System.IO;
using System.Runtime.InteropServices;
using System.Threading;

static class Handlers {
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)] delegate void Handler(int signal);
    [StructLayout(LayoutKind.Sequential, Size = 128)] struct Set { public ulong bits; }
    [StructLayout(LayoutKind.Sequential)] struct Act { public IntPtr handler; public Set mask; public int flags; public IntPtr restorer; }
    [StructLayout(LayoutKind.Sequential)] struct Times { public long everySeconds, every, firstSeconds, first; }
    [StructLayout(LayoutKind.Sequential, Size = 64)] struct Event { public IntPtr value; public int signal, notify, thread; }
    [DllImport("libc")] static extern int sigaction(int signal, ref Act act, IntPtr old);
    [DllImport("libc")] static extern int setitimer(int which, ref Times times, IntPtr old);
    [DllImport("libc")] static extern int timer_create(int clock, ref Event what, out IntPtr timer);
    [DllImport("libc")] static extern int timer_settime(IntPtr timer, int flags, ref Times times, IntPtr old);
    [DllImport("libc")] static extern int pthread_sigmask(int how, ref Set set, out Set old);
    [DllImport("libc")] static extern int sigsuspend(ref Set set);
    [DllImport("libc")] static extern IntPtr mmap(IntPtr at, UIntPtr size, int access, int flags, int file, IntPtr offset);
    [DllImport("libc")] static extern int syscall(int number);

    const int SigProf = 27, SigInfo = 4, Restart = 0x10000000, ToThread = 4, GetTid = 186;
    static object sink;
    static volatile bool over;
    static int bad;
    static long hits;

    static void Work() {
        int digits = 0;
        for (int i = 0; i < 1000; i++) { var text = i.ToString(); sink = text; digits += text.Length; }
        long x = 1;
        for (int i = 0; i < 1000000; i++) x = x * 31 + i;
        if (digits != 2890 || x == 0) Interlocked.Increment(ref bad);
    }

    static void Hit(int signal) {
        long x = 1;
        for (int i = 0; i < 300000; i++) x = x * 31 + i;
        for (int i = 0; i < 100; i++) sink = new object();
        if (x != 0) hits++;
    }

    static Thread[] StartWork() {
        var threads = new Thread[3];
        for (int i = 0; i < threads.Length; i++) {
            threads[i] = new Thread(() => { while (!over) Work(); });
            threads[i].Start();
        }
        return threads;
    }

    static void Install(int signal, IntPtr handler, int flags) {
        var act = new Act { handler = handler, flags = Restart | flags };
        if (sigaction(signal, ref act, IntPtr.Zero) != 0) throw new Exception("sigaction");
    }

    // Calls are counted at 64, those that interrupted code from 80 on, 88 bytes long, at 72.
    static IntPtr Native() {
        byte[] code = {
            0xf0, 0x48, 0xff, 0x05, 56, 0, 0, 0,     // lock inc [64]
            0x48, 0x8b, 0x82, 0xa8, 0, 0, 0,         // mov rax, [rdx + 168]: rip in the context
            0x48, 0x2b, 0x05, 58, 0, 0, 0,           // sub rax, [80]
            0x48, 0x3b, 0x05, 59, 0, 0, 0,           // cmp rax, [88]
            0x73, 8,                                 // jae, over the next one
            0xf0, 0x48, 0xff, 0x05, 33, 0, 0, 0,     // lock inc [72]
            0xc3,
        };
        var page = mmap(IntPtr.Zero, (UIntPtr)4096, 7, 0x22, -1, IntPtr.Zero);
        Marshal.Copy(code, 0, page, code.Length);
        long low = 0, high = 0;
        foreach (var line in File.ReadAllLines("/proc/self/maps")) {
            if (!line.EndsWith("/libmono-profiler-dwell.so")) continue;
            var ends = line.Split(' ')[0].Split('-');
            if (low == 0) low = Convert.ToInt64(ends[0], 16);
            high = Convert.ToInt64(ends[1], 16);
        }
        Marshal.WriteInt64(page, 80, low);
        Marshal.WriteInt64(page, 88, high - low);
        return page;
    }

    static void RunNative(int signal, long wanted) {
        var page = Native();
        Install(signal, page, SigInfo);
        var threads = StartWork();
        int which = signal == SigProf ? 2 : 0;
        var times = new Times { every = 1000, first = 1000 };
        if (setitimer(which, ref times, IntPtr.Zero) != 0) throw new Exception("setitimer");
        while (Marshal.ReadInt64(page, 64) < wanted) Work();
        times = new Times();
        setitimer(which, ref times, IntPtr.Zero);
        over = true;
        foreach (var thread in threads) thread.Join();
        hits = Marshal.ReadInt64(page, 64);
        Console.WriteLine("nested " + Marshal.ReadInt64(page, 72));
    }

    static void RunManaged(int signal, long wanted) {
        Handler handler = Hit;
        Install(signal, Marshal.GetFunctionPointerForDelegate(handler), 0);
        Set only = new Set { bits = 1UL << (signal - 1) }, before;
        pthread_sigmask(0, ref only, out before);
        var threads = StartWork();
        var what = new Event { signal = signal, notify = ToThread, thread = syscall(GetTid) };
        IntPtr timer;
        if (timer_create(signal == SigProf ? 2 : 1, ref what, out timer) != 0) throw new Exception("timer_create");
        var times = new Times { every = 1000000, first = 1000000 };
        timer_settime(timer, 0, ref times, IntPtr.Zero);
        while (hits < wanted) sigsuspend(ref before);
        times = new Times();
        timer_settime(timer, 0, ref times, IntPtr.Zero);
        over = true;
        foreach (var thread in threads) thread.Join();
        GC.KeepAlive(handler);
    }

    static int Main(string[] args) {
        int signal = int.Parse(args[1]);
        long wanted = long.Parse(args[2]);
        if (args[0] == "native") RunNative(signal, wanted); else RunManaged(signal, wanted);
        Console.WriteLine("hits " + hits);
        Console.WriteLine("bad " + bad);
        return 7;
    }
}
