import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  builtInCommandLine,
  type CommandPlace,
} from '../../../../src/emulation/containers/built-in-commands.ts';

let server: Server;
let port = 0;
beforeAll(async () => {
  server = createServer((request, response) => {
    if (request.url === '/slow') return;
    response.writeHead(request.url === '/missing' ? 404 : 200, { 'x-a': 'b' });
    response.end(`${request.method ?? ''} ${request.url ?? ''} ${request.headers.host ?? ''}`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  port = typeof address === 'object' ? (address?.port ?? 0) : 0;
});
afterAll(() => server.close().closeAllConnections());

const environment = new Map([
  ['NAME', 'web'],
  ['TEXT', 'two words'],
]);
const files = new Map([
  ['/etc/config/color', 'blue\n'],
  ['/data/a', '1'],
]);
const missing = (): never => {
  throw Object.assign(new Error('open'), { code: 'ENOENT' });
};
const found = (name: string): Promise<readonly string[]> =>
  name === 'web' ? Promise.resolve(['127.0.0.1']) : Promise.reject(new Error('no such host'));
const place: CommandPlace = {
  ...{ hostname: 'web-0', environment, workingDirectory: '/data' },
  readFile: (path) => Promise.resolve(Buffer.from(files.get(path) ?? missing())),
  list: (path) =>
    Promise.resolve(
      path.startsWith('/data')
        ? [
            { name: 'a', isFolder: false, size: 1 },
            { name: '.b', isFolder: true, size: 0 },
          ]
        : missing(),
    ),
  lookUp: (name) => found(name),
  resolve: (name) => found(name),
  connect: async (address, to, signal) => {
    const socket = connect({ host: address, port: to, signal });
    await once(socket, 'connect');
    return socket;
  },
};

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function ran(argv: readonly string[], signal = new AbortController().signal): Promise<Ran> {
  const run = builtInCommandLine(argv, environment);
  if (run === undefined) throw new Error(`${argv.join(' ')} is not built in`);
  let [out, err] = ['', ''];
  const output = {
    stdout: (text: string | Buffer) => void (out += String(text)),
    stderr: (text: string) => void (err += text),
  };
  return { code: await run(place, output, signal), out, err };
}
const shell = async (script: string): Promise<Ran> => await ran(['/bin/sh', '-c', script]);

describe('a list of simple commands', () => {
  it.each([
    ['echo hello', 'hello\n'],
    ['echo "a  b" \'$NAME\' c\\ d', 'a  b $NAME c d\n'],
    ['echo -n $NAME ${NAME} "x${NAME}y" "$TEXT"; echo', 'web web xweby two words\n'],
    ['false && echo no || echo yes', 'yes\n'],
    ['true || echo no; echo both\n echo lines', 'both\nlines\n'],
    ['exec hostname', 'web-0\n'],
    ['pwd; whoami', '/data\nroot\n'],
    ['printenv NAME', 'web\n'],
    ['date +%Y-%m-%dT | cat', undefined],
    ['id', 'uid=0(root) gid=0(root) groups=0(root)\n'],
    ['env', 'NAME=web\nTEXT=two words\n'],
  ])('%s', async (script, out) => {
    if (out === undefined) expect(builtInCommandLine(['sh', '-c', script], environment)).toBeUndefined();
    else expect(await shell(script)).toEqual({ code: 0, out, err: '' });
  });

  it.each([
    ...[
      'echo a | cat',
      'echo a > f',
      'echo $(id)',
      'echo `id`',
      '(echo a)',
      'X=1 env',
      'echo *',
      'echo $TEXT',
    ],
    ...['while true; do sleep 1; done', 'echo "unclosed', "echo 'unclosed", 'sleep', 'sleep x', 'python3 -V'],
    ...[
      'wget http://web',
      'curl -o file http://web',
      'curl https://web',
      'curl --unknown http://web',
      'cat',
      '&& echo',
    ],
    ...['nothing-like-it', 'echo a & echo b', '! true', 'ls --color', 'date -s x'],
  ])('is not built in: %s', (script) => {
    expect(builtInCommandLine(['sh', '-c', script], environment)).toBeUndefined();
  });

  it('has words that cannot be split as a program alone, too', async () => {
    expect(await ran(['echo', '$NAME', ';', '>'])).toEqual({ code: 0, out: '$NAME ; >\n', err: '' });
    expect(builtInCommandLine(['sh'], environment)).toBeUndefined();
    expect(builtInCommandLine([], environment)).toBeUndefined();
  });
});

it('reads the files of the Pod', async () => {
  expect(await shell('cat /etc/config/color a')).toEqual({ code: 0, out: 'blue\n1', err: '' });
  expect(await shell('cat /none a')).toEqual({
    code: 1,
    out: '1',
    err: 'cat: /none: No such file or directory\n',
  });
  expect((await shell('ls')).out).toBe('a\n');
  expect((await shell('ls -a /data')).out).toBe('a\n.b\n');
  expect((await shell('ls -l /data')).out).toMatch(/^-rw-r--r-- 1 root root +1 a\n$/);
  expect(await shell('ls /none')).toMatchObject({ code: 1, err: 'ls: /none: No such file or directory\n' });
});

it('asks the network of the Pod', async () => {
  const url = `web:${port}`;
  expect(await shell(`wget -qO- http://${url}/x?a=1`)).toEqual({
    code: 0,
    out: `GET /x?a=1 ${url}`,
    err: '',
  });
  expect((await shell(`wget -O - -q -T 5 ${url}`)).out).toBe(`GET / ${url}`);
  expect((await shell(`curl -s -H 'Host: shop' http://${url}/`)).out).toBe('GET / shop');
  expect((await shell(`curl -sI ${url}`)).out).toMatch(/^HTTP\/1.1 200 OK\r\nx-a: b\r\n/);
  expect((await shell(`curl -s -o /dev/null -w '%{http_code}' ${url}/missing`)).out).toBe('404');
  expect(await shell(`curl -sf ${url}/missing`)).toMatchObject({ code: 22, out: '' });
  expect(await shell(`wget -qO- ${url}/missing`)).toMatchObject({ code: 1, out: '' });
  expect((await shell('curl -s nowhere')).code).toBe(6);
  expect((await shell('curl http://127.0.0.1:1')).err).toContain('(7)');
  expect((await shell(`curl -m 0.1 ${url}/slow`)).code).toBe(28);
  expect((await shell('nslookup web')).out).toBe('Name:\tweb\nAddress: 127.0.0.1\n');
  expect((await shell('nslookup nowhere')).code).toBe(1);
});

it('says the time', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: new Date('2026-03-04T05:06:07.089Z') });
  onTestFinished(() => void vi.useRealTimers());
  expect((await shell('date; date +%s')).out).toBe('Wed Mar  4 05:06:07 UTC 2026\n1772600767\n');
  expect((await shell('date "+%Y-%m-%dT%H:%M:%S.%N%z %Z %%"')).out).toBe(
    '2026-03-04T05:06:07.089000000+0000 UTC %\n',
  );
});

it('ends when it is told to', async () => {
  const ending = new AbortController();
  const sleeping = ran(['sleep', '1h'], ending.signal);
  ending.abort(new Error('stopped'));
  await expect(sleeping).rejects.toThrow();
  expect(await shell('sleep 0.01 && echo slept')).toMatchObject({ code: 0, out: 'slept\n' });
});
