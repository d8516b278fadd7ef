package io.dwell.demo.server;

import io.dwell.demo.store.Packer;
import java.nio.charset.StandardCharsets;

/** {@code POST /ship}: gives a parcel to the packer and waits to be notified. */
final class ShipEndpoint implements Endpoint {
    private final Packer packer;

    ShipEndpoint(Packer packer) {
        this.packer = packer;
    }

    @Override
    public String path() {
        return "/ship";
    }

    @Override
    public byte[] respond(byte[] body) throws InterruptedException {
        return Long.toString(packer.pack()).getBytes(StandardCharsets.ISO_8859_1);
    }
}
