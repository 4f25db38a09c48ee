/** The certificate that agnhost has in its image: self-signed, for localhost, and as public as its key. */
import type { AgnhostPlace } from './context.ts';

const certificate = `-----BEGIN CERTIFICATE-----
MIIBrzCCAVSgAwIBAgIUYaxNR6a67J5oZDMCdrUnAQ8phucwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyNTIzMTc1N1oYDzIxMjYxMTAx
MjMxNzU3WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASndYQwtFQMR+VeuuNBIeXeeVNx2e6dyyPb+6ZrY/bjW+STfho/hhl3
dGNUK7/+v0vN9b5DUeexX6hkXwlKy5Xjo4GBMH8wHQYDVR0OBBYEFIB+k1q1+vNc
OWX7Buwseik2wMH8MB8GA1UdIwQYMBaAFIB+k1q1+vNcOWX7Buwseik2wMH8MA8G
A1UdEwEB/wQFMAMBAf8wLAYDVR0RBCUwI4IJbG9jYWxob3N0hwR/AAABhxAAAAAA
AAAAAAAAAAAAAAABMAoGCCqGSM49BAMCA0kAMEYCIQCgzn7/yiR0J1Ld33u08+gb
NGcxf5Z7m0txi9F7Cl9xWQIhAPUwqTCKSXBI7ndQVbj3O2/bPQSRsWZonCx0IKgu
QWte
-----END CERTIFICATE-----
`;

/** Of {@link certificate}: it keeps nothing secret. */
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg+PYuj37Dr78DGyAN
Daqbu/jtQclV721K0TqKMc32sYOhRANCAASndYQwtFQMR+VeuuNBIeXeeVNx2e6d
yyPb+6ZrY/bjW+STfho/hhl3dGNUK7/+v0vN9b5DUeexX6hkXwlKy5Xj
-----END PRIVATE KEY-----
`;

const files: ReadonlyMap<string, string> = new Map([
  ['localhost.crt', certificate],
  ['localhost.key', key],
]);

/** A file of TLS: of the container, or of the image at its top. @throws the system's error. */
export async function tlsFile(
  { readFile }: Pick<AgnhostPlace, 'readFile'>,
  path: string,
): Promise<Buffer | string> {
  return files.get(path.replace(/^\//, '')) ?? (await readFile(path));
}
