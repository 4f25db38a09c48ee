import { useEffect, useState } from 'preact/hooks';
import type { BGPPeerAnswer, PoolsAnswer } from '../../messages.ts';
import type { AddressRow, AnnouncerRow, PoolRow } from '../../../view/rows/rows.ts';
import { commandLine, kubectlLine } from '../parts/command-line.ts';
import { Command } from '../parts/commands.tsx';
import { usePage } from '../parts/page-context.ts';
import { Empty, Section, Toolbar } from '../parts/view-parts.tsx';
import { Table } from '../parts/virtual-list.tsx';
import {
  Code,
  counted,
  digits,
  PlaceLink,
  Reason,
  ServiceLink,
  Sign,
  Text,
  TroubleText,
} from '../parts/words.tsx';
import { withQuery } from '../state/place.ts';
import { poolsAnswer } from '../state/session.ts';
import { PoolEdit, PoolSquares } from './pool.tsx';

/** Which address has which Service, who announces it, who waits, and what an edit of a pool would do. */
export function AddressesView() {
  const { rows, place, isCurrent, atMs } = usePage();
  const { q = '', pool: chosen, edit } = place.query;
  const pools = rows.all('pool').filter(({ name }) => chosen === undefined || name === chosen);
  const addresses = rows
    .all('address')
    .filter((row) => (chosen === undefined || row.pool === chosen) && isFound(row, q));
  const waiting = rows.all('waiting');
  return (
    <div class="view addresses">
      <Toolbar
        summary={`${counted(rows.all('pool').length, 'pool')}, ${counted(addresses.length, 'address', 'addresses')} in use`}
        name="addresses"
        command={commandLine('servicenet', 'pools', ...(rows.cluster?.clusterFlags ?? []))}
      >
        {chosen !== undefined && (
          <PlaceLink to={withQuery(place, { pool: undefined })} class="button">
            pool <Text>{chosen}</Text> ✕
          </PlaceLink>
        )}
      </Toolbar>
      {waiting.length > 0 && (
        <Section title="Waiting" class="waiting-services">
          <ul class="plain">
            {waiting.map(({ key, service, reason, message }) => (
              <li key={key}>
                <ServiceLink of={service} /> <Reason word={reason} /> <Text>{message}</Text>
              </li>
            ))}
          </ul>
        </Section>
      )}
      {pools.length === 0 && isCurrent && (
        <Empty sentence="There are no AddressPools. docs/pools.md says all about them; one with free addresses of your network is enough:">
          <pre class="notice code">{examplePool}</pre>
          <Command line={kubectlLine(rows.cluster, 'apply', '-f', 'pool.yaml')} />
        </Empty>
      )}
      {pools.map((pool) => (
        <Pool key={pool.key} pool={pool} isEdited={edit === pool.name && atMs === undefined} />
      ))}
      {addresses.length > 0 && (
        <Section title="In use">
          <AddressTable addresses={addresses} />
        </Section>
      )}
      {rows.all('announcer').length > 0 && (
        <Section title="Announcers">
          <Announcers announcers={rows.all('announcer')} />
        </Section>
      )}
      {rows.all('egressAddress').length > 0 && (
        <Section title="Egress addresses">
          <Table
            name="addresses of EgressIPs"
            rows={rows.all('egressAddress')}
            columns={[
              { title: 'Address', class: 'code', cell: ({ address }) => <Text>{address}</Text> },
              { title: 'EgressIP', cell: ({ egressIP }) => <Text>{egressIP}</Text> },
              {
                title: 'Node',
                cell: ({ node }) => (node === undefined ? 'on no node' : <Text>{node}</Text>),
              },
            ]}
          />
        </Section>
      )}
      {atMs === undefined && <Unwatched />}
    </div>
  );
}

const examplePool = `apiVersion: servicenet.dev/v1alpha1
kind: AddressPool
metadata:
  name: default
spec:
  addresses: [192.0.2.0/24]`;

/** What is read when the view is opened, and not watched: it is of now. */
function Unwatched() {
  const [{ bgpPeers = [], ipPools = [] }, setAnswer] = useState<PoolsAnswer>({});
  useEffect(() => {
    // The band above says why there is none.
    poolsAnswer().then(setAnswer, () => setAnswer({}));
  }, []);
  return (
    <>
      {bgpPeers.length > 0 && <BgpPeers peers={bgpPeers} />}
      {ipPools.length > 0 && <IPPools pools={ipPools} />}
    </>
  );
}

/** Of a session that is. */
const established = 'Established';

function BgpPeers({ peers }: { readonly peers: readonly BGPPeerAnswer[] }) {
  return (
    <Section title="BGP peers" aside="when this view was opened">
      <Table
        name="BGP peers"
        rows={peers.map((peer) => ({ ...peer, key: peer.name }))}
        columns={[
          { title: 'BGPPeer', cell: ({ name }) => <Text>{name}</Text> },
          { title: 'Address', class: 'code', cell: ({ peerAddress }) => <Text>{peerAddress}</Text> },
          {
            title: 'AS',
            class: 'code',
            cell: ({ myASN, peerASN }) => <Text>{`${myASN} → ${peerASN}`}</Text>,
          },
          {
            title: 'Sessions',
            class: 'wide',
            cell: ({ sessions }) =>
              sessions.length === 0 ? (
                <span class="muted">no node has told of one</span>
              ) : (
                <ul>
                  {sessions.map(({ node, reason, message }) => (
                    <li key={node}>
                      <Text>{node}</Text>{' '}
                      {reason === established ? (
                        <span class="muted">{reason}</span>
                      ) : (
                        <TroubleText trouble={{ reason, message }} />
                      )}
                    </li>
                  ))}
                </ul>
              ),
          },
        ]}
      />
    </Section>
  );
}

/** Pools of further networks of Pods. */
function IPPools({ pools }: { readonly pools: NonNullable<PoolsAnswer['ipPools']> }) {
  return (
    <Section title="IPPools" aside="of further networks of Pods, when this view was opened">
      <Table
        name="IPPools"
        rows={pools.map((pool) => ({ ...pool, key: pool.name }))}
        columns={[
          { title: 'Range', class: 'code', cell: ({ range }) => <Text>{range}</Text> },
          { title: 'IPPool', class: 'wide', cell: ({ name }) => <Text>{name}</Text> },
          { title: 'Used', class: 'short', cell: ({ used }) => digits(used) },
          { title: 'Free', class: 'short', cell: ({ free }) => digits(free) },
          {
            title: 'Pods',
            class: 'wide',
            cell: ({ addresses }) => (
              <ul>
                {addresses.slice(0, mostAddresses).map(({ address, pod, interface: name }) => (
                  <li key={address}>
                    <Code>{address}</Code> <Text>{`${pod} ${name}`}</Text>
                  </li>
                ))}
                {addresses.length > mostAddresses && (
                  <li class="muted">and {digits(addresses.length - mostAddresses)} more</li>
                )}
              </ul>
            ),
          },
        ]}
      />
    </Section>
  );
}

/** So many addresses of an IPPool are named. */
const mostAddresses = 20;

function Pool({ pool, isEdited }: { readonly pool: PoolRow; readonly isEdited: boolean }) {
  const { place, go, atMs } = usePage();
  const { name, addresses, families, problems } = pool;
  const [pointed, setPointed] = useState<string>();
  return (
    <section class="pool" aria-label={`pool ${name}`}>
      <header>
        <h2>
          <PlaceLink to={withQuery(place, { pool: name })}>
            <Text>{name}</Text>
          </PlaceLink>
        </h2>
        <Code>{addresses.join(', ')}</Code>
        <button
          type="button"
          disabled={atMs !== undefined}
          aria-expanded={isEdited}
          onClick={() => go(withQuery(place, { edit: isEdited ? undefined : name }))}
        >
          Plan an edit
        </button>
      </header>
      {problems.map((problem) => (
        <p key={problem} class="notice bad">
          <Text>{problem}</Text>
        </p>
      ))}
      {families.map(({ family, total, used, free, quarantined, squares }) => (
        <div key={family} class="family-block">
          <p class="counts">
            {families.length > 1 && <span>{family} </span>}
            <strong>{digits(used)}</strong> used
            {quarantined > 0 && (
              <>
                {' · '}
                <strong>{digits(quarantined)}</strong> quarantined
              </>
            )}
            {' · '}
            <strong>{digits(free)}</strong> free of {digits(total)}
          </p>
          {squares === undefined ? (
            <svg class="bar-of-use" width="480" height="8" viewBox="0 0 480 8" aria-hidden="true">
              <rect class="of" x="0.5" y="0.5" width="479" height="7" rx="3.5" />
              <rect
                class="used"
                x="0.5"
                y="0.5"
                width={Math.max(used > 0 ? 4 : 0, (479 * used) / total)}
                height="7"
                rx="3.5"
              />
            </svg>
          ) : (
            <PoolSquares squares={squares} onPoint={setPointed} />
          )}
        </div>
      ))}
      {families.some(({ squares }) => squares !== undefined) && <Pointed address={pointed} pool={pool} />}
      {isEdited && <PoolEdit pool={pool} />}
    </section>
  );
}

/** Who has the address that is pointed at; else what the signs mean. */
function Pointed({ address, pool }: { readonly address: string | undefined; readonly pool: PoolRow }) {
  const { rows, nowMs } = usePage();
  const square = pool.families
    .flatMap(({ squares = [] }) => squares)
    .find((each) => each.address === address);
  if (square === undefined) {
    return (
      <p class="legend muted">
        <span class="key used" aria-hidden="true" /> used <span class="key quarantined" aria-hidden="true" />{' '}
        quarantined <span class="key reserved" aria-hidden="true" /> reserved{' '}
        <span class="key free" aria-hidden="true" /> free
      </p>
    );
  }
  const holders = rows.get('address', square.address)?.holders ?? [];
  const minutes = square.until === undefined ? 0 : Math.ceil((Date.parse(square.until) - nowMs) / 60_000);
  return (
    <p class="legend">
      <Code>{square.address}</Code> {square.state}
      {square.until !== undefined && minutes > 0 && ` for ${minutes} min`}{' '}
      {holders.map(({ service, ports, announced }) => (
        <span key={service}>
          <strong>
            <Text>{service}</Text>
          </strong>{' '}
          <Text>{[ports.join(', '), announced ?? ''].filter((text) => text !== '').join(' · ')}</Text>{' '}
        </span>
      ))}
    </p>
  );
}

function AddressTable({ addresses }: { readonly addresses: readonly AddressRow[] }) {
  const { place } = usePage();
  return (
    <Table
      name="addresses in use"
      rows={addresses}
      columns={[
        { title: 'Address', class: 'code', cell: ({ address }) => <Text>{address}</Text> },
        {
          title: 'Pool',
          cell: ({ pool }) =>
            pool === undefined ? (
              'in no pool'
            ) : (
              <PlaceLink to={withQuery(place, { pool })}>
                <Text>{pool}</Text>
              </PlaceLink>
            ),
        },
        {
          title: 'Service',
          class: 'wide',
          cell: ({ holders, reservedFor }) => (
            <>
              {holders.map(({ service }) => (
                <ServiceLink key={service} of={service} />
              ))}
              {reservedFor !== undefined && (
                <span class="muted">
                  reserved for <Text>{reservedFor}</Text>
                </span>
              )}
            </>
          ),
        },
        {
          title: 'Ports',
          class: 'code',
          cell: ({ holders }) => <Text>{holders.flatMap(({ ports }) => ports).join(', ')}</Text>,
        },
        {
          title: 'Announced',
          class: 'wide',
          cell: ({ holders }) => (
            <Text>{[...new Set(holders.flatMap(({ announced }) => announced ?? []))].join(', ') || '–'}</Text>
          ),
        },
      ]}
    />
  );
}

function Announcers({ announcers }: { readonly announcers: readonly AnnouncerRow[] }) {
  return (
    <Table
      name="announcers"
      rows={announcers}
      columns={[
        {
          title: 'Node',
          cell: ({ node, isAlive }) => (
            <>
              <Sign tone={isAlive ? 'good' : 'bad'} sign={isAlive ? '●' : '○'} /> <Text>{node}</Text>
              {!isAlive && <span class="bad"> its Lease is not renewed</span>}
            </>
          ),
        },
        {
          title: 'Interfaces',
          class: 'wide',
          cell: ({ interfaces }) => (
            <Text>
              {interfaces.map(({ name, subnets }) => `${name} ${subnets.join(', ')}`).join(' · ') || '–'}
            </Text>
          ),
        },
        { title: 'BGP sessions', cell: ({ sessions }) => <Text>{sessions.join(', ') || '–'}</Text> },
        {
          title: 'Layer 2',
          class: 'wide code',
          cell: ({ announced }) => <Text>{announced.join(', ') || '–'}</Text>,
        },
        {
          title: 'Refused',
          class: 'wide',
          cell: ({ refused }) =>
            refused.map(({ address, reason, message }) => (
              <span key={address} title={message}>
                <Code>{address}</Code> <Reason word={reason} />{' '}
              </span>
            )),
        },
      ]}
    />
  );
}

function isFound({ address, pool = '', holders }: AddressRow, search: string): boolean {
  const text = [address, pool, ...holders.map(({ service, announced = '' }) => `${service} ${announced}`)]
    .join('\n')
    .toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
