import java.util.SplittableRandom;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.ByteBuffersDirectory;

/** Lucene: an index in memory, and searches in it. Argument: how many. */
public final class Search {
    private Search() {}

    private static String word(SplittableRandom random) {
        return "w" + (int) Math.pow(random.nextDouble() * 100, 2);
    }

    public static void main(String[] args) throws Exception {
        int searches = Integer.parseInt(args[0]);
        SplittableRandom random = new SplittableRandom(1);
        ByteBuffersDirectory directory = new ByteBuffersDirectory();
        IndexWriterConfig config = new IndexWriterConfig(new StandardAnalyzer());
        try (IndexWriter writer = new IndexWriter(directory, config)) {
            for (int i = 0; i < 20_000; i++) {
                StringBuilder text = new StringBuilder();
                for (int j = 0; j < 60; j++) {
                    text.append(word(random)).append(' ');
                }
                Document document = new Document();
                document.add(new TextField("text", text.toString(), Field.Store.NO));
                writer.addDocument(document);
            }
        }
        long hits = 0;
        try (DirectoryReader reader = DirectoryReader.open(directory)) {
            IndexSearcher searcher = new IndexSearcher(reader);
            for (int n = 0; n < searches; n++) {
                BooleanQuery.Builder query = new BooleanQuery.Builder();
                for (int i = 0; i < 5; i++) {
                    query.add(new TermQuery(new Term("text", word(random))),
                            BooleanClause.Occur.SHOULD);
                }
                hits += searcher.search(query.build(), 10).scoreDocs.length;
            }
        }
        System.out.println("hits " + hits);
    }
}
