// One thread that computes and many that wait, each in its own way. Argument: seconds of CPU time.
using System;
using System.Runtime.InteropServices;
using System.Threading;

static class Idle {
    static volatile bool over;
    static readonly object taken = new object();
    static readonly ManualResetEvent never = new ManualResetEvent(false);

    static void Sleeper() { while (!over) Thread.Sleep(60000); }
    static void Waiter() { never.WaitOne(); }
    static void Enterer() { lock (taken) { } }
    static void Pulsed() { var own = new object(); lock (own) Monitor.Wait(own, 60000); }

    [StructLayout(LayoutKind.Sequential)] struct Time { public long s, ns; }
    [DllImport("libc")] static extern int clock_gettime(int clock, out Time time);
    static double Now() { Time t; clock_gettime(3, out t); return t.s + t.ns / 1e9; }

    static long Busy(double seconds) {
        double end = Now() + seconds;
        long x = 0;
        while (Now() < end) for (int i = 0; i < 100000; i++) x = x * 31 + i;
        return x;
    }

    static void Main(string[] args) {
        lock (taken) {
            ThreadStart[] ways = { Sleeper, Waiter, Enterer, Pulsed };
            for (int i = 0; i < 20; i++) {
                var way = ways[i % ways.Length];
                new Thread(way) { Name = "idle " + way.Method.Name, IsBackground = true }.Start();
            }
            Thread.Sleep(300);
            Busy(double.Parse(args[0]));
        }
    }
}
