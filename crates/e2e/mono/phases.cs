using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

// Phases of known CPU time: each runs until the thread's own clock says so, and prints what it used.
static class Phases {
    [StructLayout(LayoutKind.Sequential)] struct Time { public long s, ns; }
    [DllImport("libc")] static extern int clock_gettime(int clock, out Time time);
    [DllImport("libc")] static extern IntPtr memchr(IntPtr at, int what, UIntPtr len);
    static long Now() { Time t; clock_gettime(3, out t); return t.s * 1000000000L + t.ns; }

    static object sink; static double real = 1.5; static long number;
    static byte[] from = new byte[1 << 20], to = new byte[1 << 20];
    static IntPtr block;

    [MethodImpl(MethodImplOptions.NoInlining)] static void PhaseManaged() { long x = number; for (int i = 0; i < 2000000; i++) x = x * 31 + i; number = x; }
    [MethodImpl(MethodImplOptions.NoInlining)] static void PhaseModulo() { double x = real; for (int i = 0; i < 100000; i++) x += (i * 1e9) % 7.1; real = x; }
    [MethodImpl(MethodImplOptions.NoInlining)] static void PhaseInvoke() { for (int i = 0; i < 20; i++) number += (long)memchr(block, 1, (UIntPtr)(1 << 20)); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void PhaseCopy() { for (int i = 0; i < 50; i++) Buffer.BlockCopy(from, 0, to, 0, from.Length); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void PhaseObjects() { for (int i = 0; i < 500000; i++) sink = new object(); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void PhaseFormat() { for (int i = 0; i < 5000; i++) sink = string.Format("{0} of {1}", i, real); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void PhaseThrow() { for (int i = 0; i < 300; i++) { try { Thrower(i); } catch (InvalidOperationException e) { sink = e; } } }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Thrower(int i) { throw new InvalidOperationException(); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void PhasePow() { double x = real; for (int i = 0; i < 100000; i++) x += Math.Pow(1.0000001 + i * 1e-9, 3.3); real = x; }

    static void Main(string[] args) {
        double seconds = args.Length > 0 ? double.Parse(args[0]) : 10;
        block = Marshal.AllocHGlobal(1 << 20);
        for (int i = 0; i < 1 << 20; i++) Marshal.WriteByte(block, i, 0);
        var names = new[] { "PhaseManaged", "PhaseModulo", "PhaseInvoke", "PhaseCopy", "PhaseObjects", "PhaseFormat", "PhaseThrow", "PhasePow" };
        var phases = new Action[] { PhaseManaged, PhaseModulo, PhaseInvoke, PhaseCopy, PhaseObjects, PhaseFormat, PhaseThrow, PhasePow };
        var used = new long[phases.Length]; long[] shares = { 19, 20, 8, 10, 15, 13, 8, 7 };
        long all = (long)(seconds * 1e9), sum = 0;
        while (sum < all) {
            for (int p = 0; p < phases.Length; p++) {
                long want = shares[p] * 2000000L, began = Now(), now;
                do { phases[p](); now = Now(); } while (now - began < want);
                used[p] += now - began; sum += now - began;
            }
        }
        for (int p = 0; p < phases.Length; p++) Console.WriteLine(names[p] + " " + used[p]);
        Time all2; clock_gettime(2, out all2); Console.WriteLine("cpu " + (all2.s * 1000000000L + all2.ns));
    }
}
