package io.dwell.chaos;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Defines its own copies of the classes of the package `template`. */
final class ChurnLoader extends ClassLoader {
    static final String TEMPLATES = "io.dwell.chaos.template.";
    private static final Map<String, byte[]> BYTES = new ConcurrentHashMap<>();

    ChurnLoader() {
        super(ChurnLoader.class.getClassLoader());
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (!name.startsWith(TEMPLATES)) {
            return super.loadClass(name, resolve);
        }
        synchronized (getClassLoadingLock(name)) {
            Class<?> known = findLoadedClass(name);
            if (known != null) {
                return known;
            }
            byte[] bytes = bytes(name);
            return defineClass(name, bytes, 0, bytes.length);
        }
    }

    static byte[] bytes(String name) {
        return BYTES.computeIfAbsent(name, ChurnLoader::read);
    }

    private static byte[] read(String name) {
        String path = name.replace('.', '/') + ".class";
        try (InputStream in = ChurnLoader.class.getClassLoader().getResourceAsStream(path)) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            byte[] part = new byte[4096];
            for (int n = in.read(part); n >= 0; n = in.read(part)) {
                out.write(part, 0, n);
            }
            return out.toByteArray();
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
