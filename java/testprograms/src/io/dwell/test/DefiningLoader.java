package io.dwell.test;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/** A temporary class loader: defines generated classes, or private copies of the program's own. */
final class DefiningLoader extends ClassLoader {
    private final Set<String> ownCopies;

    /** A loader that loads its own copies of the named classes and shares all others. */
    DefiningLoader(String... ownCopies) {
        super(DefiningLoader.class.getClassLoader());
        this.ownCopies = new HashSet<>(Arrays.asList(ownCopies));
    }

    Class<?> define(ClassFile file) {
        byte[] bytes = file.bytes();
        // Without a name: the check of this argument would refuse some legal ones.
        return defineClass(null, bytes, 0, bytes.length);
    }

    /** Defines the class in a loader of its own and makes an instance of it. */
    static <T> T instantiate(ClassFile file, Class<T> type) {
        return instantiate(new DefiningLoader().define(file), type);
    }

    static <T> T instantiate(Class<?> made, Class<T> type) {
        try {
            return type.cast(made.getConstructor().newInstance());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("generated classes have a public constructor", e);
        }
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (!ownCopies.contains(name)) {
            return super.loadClass(name, resolve);
        }
        synchronized (getClassLoadingLock(name)) {
            Class<?> loaded = findLoadedClass(name);
            return loaded != null ? loaded : defineCopy(name);
        }
    }

    private Class<?> defineCopy(String name) throws ClassNotFoundException {
        String resource = name.replace('.', '/') + ".class";
        try (InputStream in = getParent().getResourceAsStream(resource)) {
            if (in == null) {
                throw new ClassNotFoundException(name);
            }
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            byte[] buffer = new byte[4096];
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                bytes.write(buffer, 0, n);
            }
            return defineClass(name, bytes.toByteArray(), 0, bytes.size());
        } catch (IOException e) {
            throw new ClassNotFoundException(name, e);
        }
    }
}
