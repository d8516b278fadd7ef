package io.dwell.verify.jmc;

import java.io.PrintStream;
import java.util.HashSet;
import java.util.Set;
import org.openjdk.jmc.common.IMCStackTrace;
import org.openjdk.jmc.common.item.IItem;
import org.openjdk.jmc.common.item.IItemCollection;
import org.openjdk.jmc.common.item.IItemIterable;
import org.openjdk.jmc.common.item.IMemberAccessor;
import org.openjdk.jmc.common.item.ItemFilters;
import org.openjdk.jmc.common.util.FormatToolkit;
import org.openjdk.jmc.flightrecorder.JfrAttributes;
import org.openjdk.jmc.flightrecorder.jdk.JdkTypeIDs;
import org.openjdk.jmc.flightrecorder.stacktrace.FrameSeparator;
import org.openjdk.jmc.flightrecorder.stacktrace.FrameSeparator.FrameCategorization;
import org.openjdk.jmc.flightrecorder.stacktrace.tree.Node;
import org.openjdk.jmc.flightrecorder.stacktrace.tree.StacktraceTreeModel;

/** Mission Control's view of the samples: its tree of stacks, and every stack as text. */
final class Samples {
    private Samples() {}

    static void print(IItemCollection items, PrintStream out) {
        IItemCollection samples = items.apply(ItemFilters.type(JdkTypeIDs.EXECUTION_SAMPLE));
        FrameSeparator byMethod = new FrameSeparator(FrameCategorization.METHOD, false);
        out.println("tree_samples "
                + sum(new StacktraceTreeModel(samples, byMethod, false).getRoot()));
        Set<IMCStackTrace> stacks = new HashSet<>();
        for (IItemIterable sameType : samples) {
            IMemberAccessor<IMCStackTrace, IItem> stack =
                    JfrAttributes.EVENT_STACKTRACE.getAccessor(sameType.getType());
            for (IItem item : sameType) {
                stacks.add(stack.getMember(item));
            }
        }
        stacks.remove(null);
        long chars = stacks.stream().map(FormatToolkit::getHumanReadable)
                .mapToLong(String::length).sum();
        out.println("stacks_as_text " + stacks.size() + " " + chars);
    }

    /** Number of samples of all stacks. */
    private static long sum(Node root) {
        double sum = 0;
        for (Node child : root.getChildren()) {
            sum += child.getCumulativeWeight();
        }
        return Math.round(sum);
    }
}
