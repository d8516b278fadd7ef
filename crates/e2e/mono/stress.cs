// Everything at once that a moving collector and a sampling signal may get wrong together; each
// worker checks what it made. Arguments: seconds, or cpu=SECONDS of CPU time, and which workers (all). Prints
// "bad N", and how much was done.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Reflection.Emit;
using System.Runtime.InteropServices;
using System.Threading;

static class Stress {
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    delegate int Compare(IntPtr a, IntPtr b);
    [DllImport("libc")]
    static extern void qsort([In, Out] int[] items, UIntPtr count, UIntPtr size, Compare compare);

    sealed class Node {
        public Node left, right; public int value;
        public static Node Make(int depth, int value) {
            if (depth == 0) return null;
            var node = new Node { value = value };
            node.left = Make(depth - 1, value * 2);
            node.right = Make(depth - 1, value * 2 + 1);
            return node;
        }
        public bool IsGood(int depth, int want) {
            if (value != want) return false;
            if (depth == 1) return left == null && right == null;
            return left.IsGood(depth - 1, want * 2) && right.IsGood(depth - 1, want * 2 + 1);
        }
    }

    static volatile bool over;
    static int bad, done;
    static readonly object gate = new object();
    static long shared;

    static void Check(bool isGood) { if (!isGood) Interlocked.Increment(ref bad); }

    static void Trees() { Check(Node.Make(12, 1).IsGood(12, 1)); }

    static void Strings() {
        string text = "";
        for (int i = 0; i < 200; i++) text += i.ToString();
        int sum = 0;
        foreach (char c in text) sum += c - '0';
        Check(text.Length == 490 && sum == 1900);
    }

    static void Arrays() {
        var all = new List<int[]>();
        for (int i = 0; i < 300; i++) {
            var one = new int[i];
            for (int j = 0; j < i; j++) one[j] = i ^ j;
            all.Add(one);
        }
        for (int i = 0; i < 300; i++)
            for (int j = 0; j < i; j++)
                if (all[i][j] != (i ^ j)) { Check(false); return; }
    }

    static void Small() {
        var kept = new object[256];
        for (int i = 0; i < 100000; i++) kept[i & 255] = new int[] { i };
        for (int i = 0; i < 256; i++) Check((((int[])kept[i])[0] & 255) == i);
    }

    static void Throw(int depth) {
        if (depth == 0) throw new InvalidOperationException("deep");
        try { Throw(depth - 1); } finally { Interlocked.Increment(ref done); }
    }

    static void Exceptions() {
        for (int i = 0; i < 50; i++) {
            bool caught = false;
            try { Throw(i % 10); } catch (InvalidOperationException e) { caught = e.Message == "deep"; }
            Check(caught);
        }
        object nothing = null;
        bool isNull = false;
        try { nothing.ToString(); } catch (NullReferenceException) { isNull = true; }
        Check(isNull);
    }

    static int InOrder(IntPtr a, IntPtr b) {
        int x = Marshal.ReadInt32(a), y = Marshal.ReadInt32(b);
        object garbage = new byte[64];
        return x < y ? -1 : x > y ? 1 : garbage == null ? 1 : 0;
    }

    static void Callbacks() {
        var items = new int[2000];
        uint seed = 1;
        for (int i = 0; i < items.Length; i++) { seed = seed * 1664525 + 1013904223; items[i] = (int)(seed >> 8); }
        Compare compare = InOrder;
        qsort(items, (UIntPtr)items.Length, (UIntPtr)4, compare);
        GC.KeepAlive(compare);
        for (int i = 1; i < items.Length; i++) if (items[i - 1] > items[i]) { Check(false); return; }
    }

    static void Dynamic() {
        for (int i = 0; i < 10; i++) {
            var method = new DynamicMethod("Made" + i, typeof(int), new[] { typeof(int) });
            var il = method.GetILGenerator();
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ldc_I4, i);
            il.Emit(OpCodes.Add);
            il.Emit(OpCodes.Ret);
            var call = (Func<int, int>)method.CreateDelegate(typeof(Func<int, int>));
            Check(call(5) == 5 + i);
        }
    }

    static void Churn() {
        var threads = new Thread[4];
        int sum = 0;
        for (int i = 0; i < threads.Length; i++) {
            int mine = i;
            threads[i] = new Thread(() => { var a = new int[100]; a[mine] = mine; Interlocked.Add(ref sum, a[mine]); });
            threads[i].Start();
        }
        foreach (var thread in threads) thread.Join();
        Check(sum == 6);
    }

    static void Locks() {
        for (int i = 0; i < 2000; i++) lock (gate) { long was = shared; shared = was + 1; Check(shared == was + 1); }
    }

    static void Boxing() {
        object sum = 0;
        for (int i = 0; i < 50000; i++) sum = (int)sum + 1;
        Check((int)sum == 50000);
    }

    // Other load may take the machine, so this waits for minutes.
    static void WaitForCpu(double seconds) {
        var process = Process.GetCurrentProcess();
        for (int i = 0; i < 6000 && process.TotalProcessorTime.TotalSeconds < seconds; i++) Thread.Sleep(20);
    }

    static int Main(string[] args) {
        string length = args.Length > 0 ? args[0] : "5";
        Action[] all = { Trees, Strings, Arrays, Small, Exceptions, Callbacks, Dynamic, Churn, Locks, Boxing, Locks };
        var works = all;
        if (args.Length > 1) {
            works = new Action[args.Length - 1];
            for (int i = 1; i < args.Length; i++) works[i - 1] = Array.Find(all, work => work.Method.Name == args[i]);
        }
        var threads = new Thread[works.Length];
        var counts = new int[works.Length];
        for (int i = 0; i < works.Length; i++) {
            int mine = i;
            threads[i] = new Thread(() => { while (!over) { works[mine](); counts[mine]++; } });
            threads[i].Name = works[i].Method.Name;
            threads[i].Start();
        }
        if (length.StartsWith("cpu=")) WaitForCpu(double.Parse(length.Substring(4)));
        else Thread.Sleep((int)(double.Parse(length) * 1000));
        over = true;
        foreach (var thread in threads) thread.Join();
        for (int i = 0; i < works.Length; i++) Console.WriteLine(threads[i].Name + " " + counts[i]);
        Console.WriteLine("collections " + (GC.CollectionCount(0) + GC.CollectionCount(1)));
        Console.WriteLine("bad " + bad);
        return bad == 0 ? 0 : 1;
    }
}
