import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { isRecord } from '../../src/objects/json.ts';
import { listAt, textAt } from '../../src/objects/json.ts';
import { Kubectl } from '../support/kubectl.ts';

let server: TestServer;
let kubectl: Kubectl;

beforeAll(async () => {
  server = await startApiServer({ controllers: ['*'], addressPools: [] });
  kubectl = new Kubectl(server.kubeconfig);
});
afterAll(async () => {
  kubectl.dispose();
  await server.stop();
});

let namespaces = 0;
/** Runs kubectl in a namespace of its own. */
async function inNamespace(): Promise<{
  readonly name: string;
  readonly ok: (command: string, input?: string) => Promise<string>;
  readonly fails: (command: string, input?: string) => Promise<string>;
  readonly json: (command: string) => Promise<unknown>;
}> {
  const name = `k${++namespaces}`;
  await server.client.request('POST', '/api/v1/namespaces', { body: { metadata: { name } } });
  const words = (command: string): string[] => ['-n', name, ...split(command)];
  return {
    name,
    ok: async (command, input) => kubectl.ok(words(command), input),
    fails: async (command, input) => kubectl.fails(words(command), input),
    json: async (command): Promise<unknown> =>
      JSON.parse(await kubectl.ok([...words(command), '-o', 'json'])) as unknown,
  };
}

/** Words of a command; quotes keep blanks together. */
function split(command: string): string[] {
  return [...command.matchAll(/(?:'[^']*'|[^\s'])+/g)].map(([word]) => word.replaceAll("'", ''));
}

const service = (name: string, ports: string, labels = '{app: web}'): string => `
apiVersion: v1
kind: Service
metadata: {name: ${name}, labels: ${labels}}
spec:
  selector: {app: web}
  ports: ${ports}
`;

describe('kubectl apply', () => {
  test('creates, leaves alone, and removes what is no longer in the file', async () => {
    const { ok, json } = await inNamespace();
    const two = service('web', '[{name: a, port: 80}, {name: b, port: 81}]');
    expect(await ok('apply -f -', two)).toBe('service/web created\n');
    expect(await ok('apply -f -', two)).toBe('service/web unchanged\n');
    expect(await ok('apply -f -', service('web', '[{name: a, port: 80}]', '{}'))).toBe(
      'service/web configured\n',
    );
    const found = await json('get service web');
    expect(listAt(found, 'spec', 'ports')).toHaveLength(1);
    expect(isRecord(found) && isRecord(found['metadata']) && found['metadata']['labels']).toBeFalsy();
  });

  test('finds what a client would not send', async () => {
    const { fails } = await inNamespace();
    const typo = service('web', '[{prot: 80}]');
    expect(await fails('apply -f -', typo)).toContain('unknown field "spec.ports[0].prot"');
    expect(await fails('apply -f -', service('web', '[{port: 99999, targetPort: 1}]'))).toContain(
      'The Service "web" is invalid: spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535, inclusive',
    );
  });

  test('[sig-cli] Kubectl client Kubectl apply should reuse port when apply to an existing SVC', async () => {
    const { ok } = await inNamespace();
    const file = service('primary', '[{port: 6379, targetPort: 6379}]').replace(
      'spec:',
      'spec:\n  type: NodePort',
    );
    await ok('apply -f -', file);
    const first = await ok('get service primary -o jsonpath={.spec.ports[0].nodePort}');
    expect(Number(first)).toBeGreaterThanOrEqual(30000);
    await ok('apply -f -', file.replace('app: web', 'app: other'));
    expect(await ok('get service primary -o jsonpath={.spec.ports[0].nodePort}')).toBe(first);
  });

  test('--dry-run=server answers what would be and stores nothing', async () => {
    const { ok, fails } = await inNamespace();
    const text = await ok('apply --dry-run=server -o yaml -f -', service('web', '[{port: 80}]'));
    expect(text).toContain('clusterIP: 10.96.');
    expect(await ok('apply --dry-run=server -f -', service('web', '[{port: 80}]'))).toBe(
      'service/web created (server dry run)\n',
    );
    expect(await fails('get service web')).toContain('services "web" not found');
  });

  test('--prune deletes what carries the label and is not in the file', async () => {
    const { ok } = await inNamespace();
    await ok('apply -f -', `${service('a', '[{port: 80}]')}---${service('b', '[{port: 80}]')}`);
    const pruned = await ok(
      'apply --prune -l app=web --prune-allowlist=core/v1/Service -f -',
      service('a', '[{port: 80}]'),
    );
    expect(pruned).toContain('service/b pruned');
    expect(await ok('get services -o name')).toBe('service/a\n');
  });

  test('--server-side tells of conflicts, and takes over when forced', async () => {
    const { ok, fails, json } = await inNamespace();
    const file = service('web', '[{name: a, port: 80, targetPort: 8080}]');
    await ok('apply --server-side --field-manager=one -f -', file);
    const other = service('web', '[{name: a, port: 80, targetPort: 9090}]');
    expect(await fails('apply --server-side --field-manager=two -f -', other)).toMatch(
      /conflict with "one": \.spec\.ports\[port=80,protocol="TCP"\]\.targetPort/,
    );
    await ok('apply --server-side --field-manager=two --force-conflicts -f -', other);
    const managed = listAt(await json('get service web --show-managed-fields'), 'metadata', 'managedFields');
    expect(managed.map((entry) => textAt(entry, 'manager'))).toEqual(['one', 'two']);
    expect(await ok('apply --server-side --field-manager=one -f -', other)).toContain('serverside-applied');
  });

  test('diff shows what apply would change, and nothing after it', async () => {
    const { ok, name } = await inNamespace();
    await ok('apply -f -', service('web', '[{port: 80, targetPort: 8080}]'));
    const changed = service('web', '[{port: 80, targetPort: 9090}]');
    const { code, stdout } = await kubectl.run(['-n', name, 'diff', '-f', '-'], changed);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^-\s+targetPort: 8080\n\+\s+targetPort: 9090$/m);
    await ok('apply -f -', changed);
    expect((await kubectl.run(['-n', name, 'diff', '-f', '-'], changed)).code).toBe(0);
  });
});

describe('kubectl create', () => {
  test('makes Services of every type', async () => {
    const { ok } = await inNamespace();
    await ok('create service clusterip plain --tcp=80:8080');
    await ok('create service clusterip none --clusterip=None');
    await ok('create service nodeport outside --tcp=80 --node-port=32100');
    await ok('create service loadbalancer balanced --tcp=80');
    await ok('create service externalname elsewhere --external-name=example.com');
    const lines = (await ok('get services --no-headers -o wide')).trim().split('\n');
    expect(lines.map((line) => line.split(/ +/).filter((_, column) => column < 5 && column !== 2))).toEqual([
      ['balanced', 'LoadBalancer', '<pending>', expect.stringMatching(/^80:3\d{4}\/TCP$/)],
      ['elsewhere', 'ExternalName', 'example.com', '<none>'],
      ['none', 'ClusterIP', '<none>', '<none>'],
      ['outside', 'NodePort', '<none>', '80:32100/TCP'],
      ['plain', 'ClusterIP', '<none>', '80/TCP'],
    ]);
    expect(await kubectl.fails(split('create service nodeport twice --tcp=80 --node-port=32100'))).toContain(
      'spec.ports[0].nodePort: Invalid value: 32100: provided port is already allocated',
    );
  });

  test('makes workloads, configuration and policies', async () => {
    const { ok, fails } = await inNamespace();
    for (const [command, made] of [
      ['create deployment web --image=nginx --replicas=2 --port=80', 'deployment.apps/web'],
      ['create configmap settings --from-literal=a=b', 'configmap/settings'],
      ['create secret generic keys --from-literal=a=b', 'secret/keys'],
      ['create serviceaccount bot', 'serviceaccount/bot'],
      ['create quota limits --hard=services=9,pods=4', 'resourcequota/limits'],
      ['create role reader --verb=get,list --resource=services', 'role.rbac.authorization.k8s.io/reader'],
      [
        'create rolebinding readers --role=reader --user=jane',
        'rolebinding.rbac.authorization.k8s.io/readers',
      ],
      ['create ingress web --rule=a.example/x*=web:80', 'ingress.networking.k8s.io/web'],
      ['create job once --image=busybox', 'job.batch/once'],
      ["create cronjob often --image=busybox --schedule='*/5 * * * *'", 'cronjob.batch/often'],
      [
        'create poddisruptionbudget budget --selector=app=web --min-available=50%',
        'poddisruptionbudget.policy/budget',
      ],
    ] as const) {
      expect(await ok(command)).toBe(`${made} created\n`);
    }
    expect(await fails('create configmap settings')).toContain('configmaps "settings" already exists');
    expect((await ok('create token bot')).split('.')).toHaveLength(3);
    expect(await ok('get configmap settings -o jsonpath={.data.a}')).toBe('b');
    expect(await ok('get secret keys -o jsonpath={.data.a}')).toBe('Yg==');
  });

  test('a namespace gets its ServiceAccount, and takes its objects with it', async () => {
    await kubectl.ok(split('create namespace short-lived'));
    await kubectl.ok(split('create -n short-lived configmap a'));
    await kubectl.ok(split('wait -n short-lived --for=create serviceaccount/default --timeout=60s'));
    expect(await kubectl.ok(split('delete namespace short-lived --wait --timeout=60s'))).toContain('deleted');
    expect(await kubectl.fails(split('get configmap -n short-lived a'))).toContain('not found');
  });

  test('expose takes ports and selector from a Deployment', async () => {
    const { ok } = await inNamespace();
    await ok('create deployment web --image=nginx --port=8080');
    await ok('expose deployment web --name=front --port=80 --target-port=8080 --type=NodePort');
    expect(
      await ok('get service front -o jsonpath={.spec.type}/{.spec.selector.app}/{.spec.ports[0].targetPort}'),
    ).toBe('NodePort/web/8080');
  });
});

describe('kubectl changes', () => {
  test('by patches of all three types, by label and by annotate', async () => {
    const { ok, fails } = await inNamespace();
    await ok('create -f -', service('web', '[{name: a, port: 80}, {name: b, port: 81}]'));
    await ok(`patch service web -p '{"spec":{"ports":[{"port":81,"targetPort":9}]}}'`);
    await ok(`patch service web --type=merge -p '{"metadata":{"labels":{"app":null,"x":"y"}}}'`);
    await ok(`patch service web --type=json -p '[{"op":"replace","path":"/spec/ports/0/name","value":"c"}]'`);
    await ok('label service web tier=front');
    await ok('annotate service web note=seen');
    expect(
      await ok(
        'get service web -o jsonpath={.metadata.labels}{.metadata.annotations.note}{.spec.ports[*].name}{.spec.ports[1].targetPort}',
      ),
    ).toBe('{"tier":"front","x":"y"}seenc b9');
    expect(await fails('label service web tier=back')).toContain('already has a value (front)');
    expect(
      await fails(`patch service web --type=json -p '[{"op":"test","path":"/spec/type","value":"X"}]'`),
    ).toContain('the server rejected our request due to an error in our request');
    expect(await fails(`patch service web -p '{"spec":{"clusterIP":"10.96.77.77"}}'`)).toContain(
      'spec.clusterIPs[0]: Invalid value: ["10.96.77.77"]: may not change once set',
    );
  });

  test('by replace, by edit and by set', async () => {
    const { ok, name } = await inNamespace();
    await ok('create -f -', service('web', '[{port: 80}]'));
    await ok('replace -f -', service('web', '[{port: 8080}]'));
    expect(await ok('get service web -o jsonpath={.spec.ports[0].port}')).toBe('8080');
    const editor = kubectl.file('editor.sh', '#!/bin/sh\nsed -i "s/port: 8080/port: 8081/" "$1"\n');
    await kubectl.ok(['-n', name, 'edit', 'service', 'web'], '', { KUBE_EDITOR: `sh ${editor}` });
    expect(await ok('get service web -o jsonpath={.spec.ports[0].port}')).toBe('8081');
    await ok('set selector service web app=other');
    expect(await ok('get service web -o jsonpath={.spec.selector.app}')).toBe('other');
  });

  test('scale sets the replicas of a Deployment, also to none', async () => {
    const { ok } = await inNamespace();
    await ok('create deployment web --image=nginx');
    await ok('scale deployment web --replicas=5');
    expect(await ok('get deployment web -o jsonpath={.spec.replicas}')).toBe('5');
    await ok('scale deployment web --current-replicas=5 --replicas=0');
    expect(await ok('get deployment web -o jsonpath={.spec.replicas}')).toBe('0');
  });
});

describe('kubectl delete', () => {
  test('by name, by selector, and with what owns or is owned', async () => {
    const { ok, name } = await inNamespace();
    for (const each of ['a', 'b', 'c']) await ok('create -f -', service(each, '[{port: 80}]'));
    expect(await ok('delete service a --now')).toContain('service "a" deleted');
    await ok('delete services -l app=web');
    expect(await ok('get services -o name')).toBe('');

    const owned = async (owner: string): Promise<void> => {
      const made = await server.client.request('POST', `/api/v1/namespaces/${name}/configmaps`, {
        body: { metadata: { name: owner } },
      });
      await server.client.request('POST', `/api/v1/namespaces/${name}/configmaps`, {
        body: {
          metadata: {
            name: `${owner}-part`,
            ownerReferences: [
              {
                ...{ apiVersion: 'v1', kind: 'ConfigMap', name: owner },
                ...{ uid: textAt(made.json(), 'metadata', 'uid'), blockOwnerDeletion: true },
              },
            ],
          },
        },
      });
    };
    await owned('kept');
    await ok('delete configmap kept --cascade=orphan');
    expect(await ok('get configmap kept-part -o jsonpath={.metadata.ownerReferences}')).toBe('');
    await owned('whole');
    await ok('delete configmap whole --cascade=foreground --timeout=60s');
    expect(await ok('get configmap whole-part --ignore-not-found')).toBe('');
    await owned('quick');
    await ok('delete configmap quick');
    await ok('wait --for=delete configmap/quick-part --timeout=60s');
  });

  test('waits for finalizers', async () => {
    const { ok } = await inNamespace();
    await ok('create configmap held');
    await ok(`patch configmap held -p '{"metadata":{"finalizers":["example.com/hold"]}}'`);
    await ok('delete configmap held --wait=false');
    expect(await ok('get configmap held -o jsonpath={.metadata.finalizers[0]}')).toBe('example.com/hold');
    const gone = ok('wait --for=delete configmap/held --timeout=60s');
    await ok(`patch configmap held --type=json -p '[{"op":"remove","path":"/metadata/finalizers"}]'`);
    await gone;
  });

  test('a Pod at once with --force', async () => {
    const { ok } = await inNamespace();
    await ok('run one --image=nginx --restart=Never');
    expect(await ok('delete pod one --grace-period=0 --force')).toContain('force deleted');
    expect(await ok('get pods -o name')).toBe('');
  });
});

describe('kubectl get and describe', () => {
  test('print tables, fields and whole objects', async () => {
    const { ok } = await inNamespace();
    await ok('create -f -', service('web', '[{name: a, port: 80}, {name: b, port: 81}]'));
    expect(await ok('get svc --show-labels')).toMatch(
      /^NAME +TYPE +CLUSTER-IP +EXTERNAL-IP +PORT\(S\) +AGE +LABELS\nweb +ClusterIP +10\.96\.\S+ +<none> +80\/TCP,81\/TCP +\S+ +app=web\n$/,
    );
    expect(await ok('get svc -L app --sort-by=.metadata.name')).toContain('APP');
    expect(await ok('get svc web -o custom-columns=N:.metadata.name,P:.spec.ports[*].port')).toBe(
      'N     P\nweb   80,81\n',
    );
    expect(await ok('get svc web -o yaml')).toContain(
      '  ports:\n  - name: a\n    port: 80\n    protocol: TCP\n',
    );
    expect(await ok('get svc -l app=web -o name --chunk-size=1')).toBe('service/web\n');
    expect(await ok('get svc --field-selector=metadata.name=web,spec.type=ClusterIP -o name')).toBe(
      'service/web\n',
    );
    expect(await ok('get svc,endpointslices -o name')).toContain('service/web\n');
    expect(await ok('get all -A')).toContain('service/kubernetes');
  });

  test('describe what belongs to a Service', async () => {
    const { ok, name } = await inNamespace();
    await ok('create deployment web --image=nginx --port=80');
    await ok('expose deployment web --port=80');
    await server.client.request('POST', '/api/v1/nodes', { body: { metadata: { name: `node-${name}` } } });
    await ok('run one --image=nginx --port=80 --labels=app=web');
    await server.client.request('PATCH', `/api/v1/namespaces/${name}/pods/one`, {
      body: { metadata: { labels: { seen: 'yes' } } },
      contentType: 'application/merge-patch+json',
    });
    await server.client.request('POST', `/api/v1/namespaces/${name}/pods/one/binding`, {
      body: { metadata: { name: 'one' }, target: { kind: 'Node', name: `node-${name}` } },
    });
    await server.client.request('PATCH', `/api/v1/namespaces/${name}/pods/one/status`, {
      body: {
        status: {
          phase: 'Running',
          podIP: '10.1.2.3',
          podIPs: [{ ip: '10.1.2.3' }],
          conditions: [{ type: 'Ready', status: 'True' }],
        },
      },
      contentType: 'application/merge-patch+json',
    });
    await ok(`wait --for=jsonpath={.subsets[0].addresses[0].ip}=10.1.2.3 endpoints/web --timeout=60s`);
    expect(await ok('describe service web')).toMatch(/^Endpoints: +10\.1\.2\.3:80$/m);
    expect(await ok('describe pod one')).toMatch(new RegExp(`^Node: +node-${name}`, 'm'));
    expect(await kubectl.ok(['describe', 'node', `node-${name}`])).toContain('one');
    expect(await ok('describe endpoints web')).toMatch(/^ {2}Addresses: +10\.1\.2\.3$/m);
    await expect.poll(() => ok('describe endpointslices')).toContain('10.1.2.3');
    await ok('create ingress web --rule=a.example/x*=web:80');
    expect(await ok('describe ingress web')).toMatch(/^ +\/x +web:80 \(10\.1\.2\.3:80\)$/m);
    expect(await ok('get pods -o wide')).toMatch(/one +0\/1 +Running +0 +\S+ +10\.1\.2\.3 +node-/);
  });

  test('-w follows changes until it is stopped', async () => {
    const { ok, name } = await inNamespace();
    await ok('create configmap first');
    const watching = kubectl.start(['-n', name, 'get', 'configmaps', '-w', '--no-headers', '-o', 'name']);
    let seen = '';
    const sees = async (text: string): Promise<void> =>
      new Promise((resolve) => {
        const look = (): void => {
          if (seen.includes(text)) resolve();
          else watching.stdout?.once('data', look);
        };
        look();
      });
    watching.stdout?.on('data', (chunk: Buffer) => (seen += chunk.toString()));
    await sees('configmap/first\n');
    await ok('create configmap second');
    await sees('configmap/second\n');
    watching.kill('SIGINT');
  });

  test('wait for a field, a condition and a deletion', async () => {
    const { ok, fails } = await inNamespace();
    await ok('create service loadbalancer web --tcp=80');
    const waiting = ok(
      'wait --for=jsonpath={.status.loadBalancer.ingress[0].ip}=192.0.2.1 service/web --timeout=60s',
    );
    await ok(
      `patch service web --subresource=status --type=merge -p '{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]},"conditions":[{"type":"Ready","status":"True","reason":"Set","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}'`,
    );
    expect(await waiting).toBe('service/web condition met\n');
    expect(await ok('wait --for=condition=Ready service/web --timeout=60s')).toBe(
      'service/web condition met\n',
    );
    expect(await fails('wait --for=condition=Other service/web --timeout=2s')).toContain('timed out');
    expect(await ok('get service web')).toContain('192.0.2.1');
  });

  test('events are listed for the object that they regard', async () => {
    const { ok, name } = await inNamespace();
    await ok('create configmap a');
    await server.client.request('POST', `/api/v1/namespaces/${name}/events`, {
      body: {
        metadata: { name: 'a.1' },
        involvedObject: { kind: 'ConfigMap', namespace: name, name: 'a', apiVersion: 'v1' },
        ...{ reason: 'Seen', message: 'it was seen', type: 'Normal', count: 1 },
        ...{ firstTimestamp: '2026-01-01T00:00:00Z', lastTimestamp: '2026-01-01T00:00:00Z' },
      },
    });
    expect(await ok('get events')).toMatch(/Normal +Seen +configmap\/a +it was seen/);
    expect(await ok('events --for configmap/a')).toContain('it was seen');
  });
});

describe('kubectl knows the server', () => {
  test('its version, address, health and resources', async () => {
    expect(await kubectl.ok(['version'])).toContain('Server Version: v1.37.2');
    expect(await kubectl.ok(['cluster-info'])).toContain(`is running at ${server.url}`);
    expect(await kubectl.ok(['get', '--raw', '/readyz?verbose'])).toContain('readyz check passed');
    expect(await kubectl.ok(['api-versions'])).toContain('discovery.k8s.io/v1\n');
    const resources = await kubectl.ok(['api-resources', '--no-headers']);
    expect(resources).toMatch(/^services +svc +v1 +true +Service$/m);
    expect(resources).toMatch(/^servicecidrs +networking\.k8s\.io\/v1 +false +ServiceCIDR$/m);
    expect(await kubectl.ok(split('api-resources --verbs=list,watch --namespaced -o name'))).toContain(
      'endpointslices.discovery.k8s.io\n',
    );
  });

  test('who one is and what one may do', async () => {
    expect(await kubectl.ok(split('auth whoami'))).toMatch(/Groups +\[system:masters/);
    expect(await kubectl.ok(split('auth can-i create services'))).toBe('yes\n');
    expect(await kubectl.ok(split('auth can-i --list'))).toContain('*.*');
  });

  test('that it has no metrics', async () => {
    expect(await kubectl.fails(split('top node'))).toContain('Metrics API not available');
    expect(await kubectl.fails(split('get --raw /apis/metrics.k8s.io/v1beta1/nodes'))).toContain('NotFound');
  });

  test('that nothing runs in its Pods', async () => {
    const { ok, fails, json } = await inNamespace();
    await ok('run idle --image=pause');
    expect(await json('get pod idle')).toMatchObject({ metadata: { name: 'idle' } });
    await ok(`patch pod idle --subresource=status --type=merge -p '{"status":{"phase":"Running"}}'`);
    expect(await fails('logs idle')).toContain('Pods are simulated here');
    expect(await fails('exec idle -- true')).toContain('Pods are simulated here');
    expect(await fails('port-forward pod/idle 0:80')).toContain('Pods are simulated here');
  });

  test('what a custom kind is that has the name of a built-in one, and which components there are', async () => {
    const spec = { type: 'object', description: 'Ours.', properties: { size: { type: 'integer' } } };
    const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
    const names = { kind: 'Deployment', plural: 'deployments', singular: 'deployment' };
    const definition = {
      ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
      metadata: { name: 'deployments.example.com' },
      spec: {
        ...{ group: 'example.com', scope: 'Namespaced', names },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    };
    await kubectl.ok(split('apply -f -'), JSON.stringify(definition));
    await kubectl.ok(split('wait --for=condition=Established crd/deployments.example.com'));
    try {
      // What it has cached of discovery is older.
      const known = async (): Promise<string> => kubectl.ok(split('api-resources --api-group=example.com'));
      await expect.poll(known, { timeout: 60_000 }).toContain('deployments');
      const explained = await kubectl.ok(split('explain deployments.example.com.spec'));
      expect(explained).toMatch(/GROUP: +example\.com.*Ours\..*size/s);
      expect(await kubectl.ok(split('explain deployments.spec.replicas'))).toMatch(/GROUP: +apps/);
    } finally {
      await kubectl.ok(split('delete crd deployments.example.com'));
    }
    expect(await kubectl.ok(split('get componentstatuses --no-headers'))).toMatch(/^etcd-0 +Healthy +ok/m);
  });

  test('what its fields mean', async () => {
    const text = await kubectl.ok(split('explain service.spec.ports'));
    expect(text).toContain('FIELD: ports <[]ServicePort>');
    expect(text).toMatch(/port\t<integer> -required-/);
    expect(await kubectl.ok(split('explain endpointslice.endpoints --recursive'))).toContain(
      'serving\t<boolean>',
    );
    // Kubernetes' own tests look for these words.
    const objects = await kubectl.ok(split('explain services'));
    expect(objects).toMatch(/apiVersion\t<string>\s+APIVersion defines/);
    expect(objects).toMatch(/kind\t<string>\s+Kind /);
    const metadata = await kubectl.ok(split('explain services.metadata'));
    expect(metadata).toMatch(
      /Standard object's metadata.*creationTimestamp\t<string>\s+CreationTimestamp is a/s,
    );
  });
});
