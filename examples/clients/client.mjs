// Finds the best x with node:  node client.mjs http://127.0.0.1:8420 NAME
// The token of the server, if any, is read from NOREGRET_TOKEN.
const [url, name] = process.argv.slice(2);
const headers = { "Content-Type": "application/json", Authorization: `Bearer ${process.env.NOREGRET_TOKEN ?? ""}` };

async function call(method, path, body) {
  const answer = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  const content = await answer.json();
  if (!answer.ok) throw new Error(`${answer.status}: ${JSON.stringify(content.detail)}`);
  return content;
}

const space = { x: { type: "float", low: 0, high: 1 } };
await call("POST", "/studies", { name, goal: "minimize", space });
for (let round = 0; round < 6; round++) {
  const { trials } = await call("POST", `/studies/${name}/ask`, { client: "node", count: 2 });
  const measured = trials.map(({ id, params }) => ({ id, value: (params.x - 0.3) ** 2 })); // what you would measure
  await call("POST", `/studies/${name}/tell`, { trials: measured }); // all or none
}
console.log(JSON.stringify(await call("GET", `/studies/${name}/best`)));
