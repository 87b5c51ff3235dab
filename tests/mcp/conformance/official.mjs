// An official TypeScript client: `node official.mjs sdk|client URL TOKEN TASK_URI FILE_URI`.
// Lists, calls, reads and subscribes, says "ready", and ends when it has received two writes to the task and one to the file.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [which, url, token, taskUri, fileUri] = process.argv.slice(2);
const modules = createRequire(pathToFileURL(process.env.NODE_MODULES_FOLDER + "/").href);
const load = (name) => import(pathToFileURL(modules.resolve(name)).href);
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
const heard = [];
const expected = [taskUri, taskUri, fileUri].sort();
let finish;
const finished = new Promise((resolve) => (finish = resolve));

function note({ params }) {
  const { uri, _meta: meta } = params;
  heard.push({ uri, author: meta.author, via: meta.change.via });
  if (heard.length >= expected.length) finish();
}

async function connectFirstEra() {
  const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const { ResourceUpdatedNotificationSchema } = await load("@modelcontextprotocol/sdk/types.js");
  const client = new Client({ name: "official-sdk", version: "1" });
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, note);
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  return client;
}

async function connectNewerEra() {
  const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
  const client = new Client({ name: "official-client", version: "1" }, { versionNegotiation: { mode: "auto" } });
  client.setNotificationHandler("notifications/resources/updated", note);
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  return client;
}

function check(condition, message) {
  if (!condition) throw new Error(message);
}

async function use(client) {
  const { tools } = await client.listTools();
  check(tools.some((tool) => tool.name === "backlog_get"), "backlog_get is not listed");
  const { resourceTemplates } = await client.listResourceTemplates();
  check(resourceTemplates.length > 0, "no templates are listed");
  const { resources } = await client.listResources();
  check(resources.length > 0, "no resources are listed");
  const called = await client.callTool({ name: "backlog_get", arguments: { id: taskUri } });
  check(!called.isError && called.structuredContent, "backlog_get answered no task");
  const { contents } = await client.readResource({ uri: taskUri });
  check(JSON.parse(contents[0].text).title, "the task could not be read");
}

async function subscribe(client) {
  const uris = [taskUri, fileUri];
  if (which === "client") return client.listen({ resourceSubscriptions: uris });
  for (const uri of uris) await client.subscribeResource({ uri });
}

const client = await (which === "client" ? connectNewerEra() : connectFirstEra());
await use(client);
await subscribe(client);
console.log("ready");
const late = setTimeout(() => finish(), 60_000);
await finished;
clearTimeout(late);
await new Promise((resolve) => setTimeout(resolve, 1500)); // a duplicate would arrive in this time
console.log(JSON.stringify(heard));
await client.close();
process.exit(0);
