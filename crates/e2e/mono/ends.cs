// Computes a little, and then does what its argument says: ways to end, domains that come and go,
// processes that are started, and a handler of the program's own that is managed code.
using System;
using System.Runtime.InteropServices;

static class Ends {
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    delegate void Handler(int signal);
    [DllImport("libc")] static extern void exit(int code);
    [DllImport("libc")] static extern IntPtr signal(int number, Handler handler);
    [DllImport("libc")] static extern int raise(int number);

    static object sink;

    static long Work() {
        long x = 1;
        for (int i = 0; i < 20000000; i++) x = x * 31 + i;
        for (int i = 0; i < 1000; i++) sink = i.ToString();
        return x;
    }

    static void InDomain() { Work(); }

    static void Domains() {
        for (int i = 0; i < 10; i++) {
            var domain = AppDomain.CreateDomain("domain" + i);
            domain.DoCallBack(InDomain);
            AppDomain.Unload(domain);
        }
        Console.WriteLine("domains 10");
    }

    static void Signals() {
        int hits = 0;
        Handler handler = number => { hits++; for (int i = 0; i < 200; i++) sink = new object(); };
        signal(10, handler);
        for (int i = 0; i < 20000; i++) raise(10);
        GC.KeepAlive(handler);
        Console.WriteLine("hits " + hits);
    }

    static void Processes() {
        for (int i = 0; i < 5; i++) System.Diagnostics.Process.Start("/bin/true").WaitForExit();
        Console.WriteLine("processes 5");
    }

    static void Main(string[] args) {
        Work();
        switch (args[0]) {
            case "exit": Environment.Exit(3); break;
            case "libc": exit(4); break;
            case "throw": throw new InvalidOperationException("thrown");
            case "domains": Domains(); break;
            case "signals": Signals(); break;
            case "processes": Processes(); break;
        }
    }
}
