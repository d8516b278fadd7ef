import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;
import org.rocksdb.AbstractComparator;
import org.rocksdb.ComparatorOptions;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;

/** RocksDB with a comparator in Java: its background threads call the JVM. Argument:
 * how many operations. */
public final class Rocks {
    private Rocks() {}

    private static final class Reverse extends AbstractComparator {
        Reverse() {
            super(new ComparatorOptions());
        }

        @Override
        public String name() {
            return "reverse";
        }

        @Override
        public int compare(ByteBuffer a, ByteBuffer b) {
            return b.compareTo(a);
        }
    }

    public static void main(String[] args) throws Exception {
        long operations = Long.parseLong(args[0]);
        Path folder = Files.createTempDirectory("rocks");
        RocksDB.loadLibrary();
        SplittableRandom random = new SplittableRandom(1);
        byte[] key = new byte[16];
        byte[] value = new byte[100];
        try (Reverse reverse = new Reverse();
                Options options = new Options().setCreateIfMissing(true).setComparator(reverse)
                        .setWriteBufferSize(1 << 20).setMaxBackgroundJobs(2);
                RocksDB db = RocksDB.open(options, folder.toString())) {
            for (long i = 0; i < operations; i++) {
                ByteBuffer.wrap(key).putLong(random.nextLong(1 << 20)).putLong(i % 7);
                if (i % 4 == 0) {
                    db.get(key);
                } else {
                    db.put(key, value);
                }
            }
        }
        try (var files = Files.list(folder)) {
            files.forEach(file -> file.toFile().delete());
        }
        Files.delete(folder);
    }
}
