import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.SplittableRandom;

/** A database in the process, by JDBC. Arguments: how many queries, the URL. */
public final class Sql {
    private Sql() {}

    public static void main(String[] args) throws Exception {
        int queries = Integer.parseInt(args[0]);
        SplittableRandom random = new SplittableRandom(1);
        long rows = 0;
        try (Connection connection = DriverManager.getConnection(args[1]);
                Statement statement = connection.createStatement()) {
            statement.execute("create table sales(id int, shop int, amount int)");
            String insert = "insert into sales values(?, ?, ?)";
            connection.setAutoCommit(false);
            try (PreparedStatement prepared = connection.prepareStatement(insert)) {
                for (int i = 0; i < 20_000; i++) {
                    prepared.setInt(1, i);
                    prepared.setInt(2, random.nextInt(500));
                    prepared.setInt(3, random.nextInt(10_000));
                    prepared.addBatch();
                }
                prepared.executeBatch();
            }
            connection.commit();
            String select = "select shop, sum(amount), count(*) from sales where amount > ?"
                    + " group by shop order by 2 desc";
            try (PreparedStatement prepared = connection.prepareStatement(select)) {
                for (int n = 0; n < queries; n++) {
                    prepared.setInt(1, random.nextInt(10_000));
                    try (ResultSet result = prepared.executeQuery()) {
                        while (result.next()) {
                            rows++;
                        }
                    }
                }
            }
        }
        System.out.println("rows " + rows);
    }
}
