package io.dwell.verify.jmc;

import java.util.ArrayList;
import java.util.List;
import org.openjdk.jmc.common.IMCFrame;
import org.openjdk.jmc.common.IMCMethod;
import org.openjdk.jmc.common.IMCStackTrace;
import org.openjdk.jmc.common.IMCThread;
import org.openjdk.jmc.common.IMCType;
import org.openjdk.jmc.common.item.IAccessorKey;
import org.openjdk.jmc.common.item.IItem;
import org.openjdk.jmc.common.item.IItemCollection;
import org.openjdk.jmc.common.item.IItemIterable;
import org.openjdk.jmc.common.item.IType;
import org.openjdk.jmc.common.unit.IQuantity;
import org.openjdk.jmc.common.unit.QuantityConversionException;
import org.openjdk.jmc.common.unit.UnitLookup;
import org.openjdk.jmc.common.util.LabeledIdentifier;

/** The events of a recording as the parser of JDK Mission Control sees them. */
final class JmcEvents {
    private JmcEvents() {}

    static List<String> lines(IItemCollection items) {
        List<String> lines = new ArrayList<>();
        for (IItemIterable sameType : items) {
            IType<IItem> type = sameType.getType();
            for (IItem item : sameType) {
                Line line = new Line(type.getIdentifier());
                for (IAccessorKey<?> key : type.getAccessorKeys().keySet()) {
                    Object value = type.getAccessor(key).getMember(item);
                    line.add(name(type, key),
                            isTextOfNumber(type, key) ? (String) value : text(value));
                }
                lines.add(line.toString());
            }
        }
        return lines;
    }

    /** The field's name in the file: Mission Control gives some fields names of its own. */
    private static String name(IType<IItem> type, IAccessorKey<?> key) {
        String field = type.getIdentifier() + "." + key.getIdentifier();
        switch (field) {
            case "jdk.ExecutionSample.eventThread":
                return "sampledThread";
            case "jdk.ActiveSetting.settingFor":
                return "id";
            default:
                return key.getIdentifier();
        }
    }

    /** Whether Mission Control shows a text for a number of the file. */
    private static boolean isTextOfNumber(IType<IItem> type, IAccessorKey<?> key) {
        return type.getIdentifier().equals("jdk.JVMInformation")
                && key.getIdentifier().equals("pid");
    }

    private static String text(Object value) {
        if (value instanceof String) {
            return Line.quoted((String) value);
        } else if (value instanceof IQuantity) {
            return number((IQuantity) value);
        } else if (value instanceof IMCThread) {
            return thread((IMCThread) value);
        } else if (value instanceof IMCStackTrace) {
            return stack((IMCStackTrace) value);
        } else if (value instanceof IMCType) {
            return Line.type(((IMCType) value).getFullName());
        } else if (value instanceof LabeledIdentifier) {
            return Long.toString(((LabeledIdentifier) value).getImplementationId());
        }
        return String.valueOf(value);
    }

    private static String number(IQuantity quantity) {
        try {
            if (quantity.getType() == UnitLookup.TIMESTAMP) {
                return Long.toString(quantity.longValueIn(UnitLookup.EPOCH_NS));
            } else if (quantity.getType() == UnitLookup.TIMESPAN) {
                return Long.toString(quantity.longValueIn(UnitLookup.NANOSECOND));
            } else if (quantity.getType() == UnitLookup.MEMORY) {
                return Long.toString(quantity.longValueIn(UnitLookup.BYTE));
            }
            return Long.toString(quantity.longValueIn(UnitLookup.NUMBER_UNITY));
        } catch (QuantityConversionException e) {
            return e.toString();
        }
    }

    private static String thread(IMCThread thread) {
        String group = thread.getThreadGroup() == null ? null : thread.getThreadGroup().getName();
        return Line.thread(thread.getThreadName(), thread.getThreadId(), group);
    }

    private static String stack(IMCStackTrace stack) {
        StringBuilder frames = new StringBuilder();
        for (IMCFrame frame : stack.getFrames()) {
            IMCMethod method = frame.getMethod();
            frames.append(Line.frame(method.getType().getFullName(), method.getMethodName(),
                    method.getFormalDescriptor(), method.getModifier(), method.isHidden(),
                    frame.getFrameLineNumber(), frame.getBCI(), frame.getType().toString()));
        }
        return Line.stack(stack.getTruncationState().isTruncated(), frames);
    }
}
